"""Variables that the kubelet makes of Services: ``GCU_X_PORT`` for a Service named ``gcu-x``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# kubernetes, pkg/kubelet/envvars: <SERVICE>_SERVICE_HOST, _SERVICE_PORT[_<NAME>], _PORT,
# _PORT_<N>_<PROTOCOL>[_PROTO|_PORT|_ADDR].
_LINK: Final = re.compile(
    r"(?P<service>\w+?)_"
    r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|(?P<port>PORT)|PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)"
)


def is_service_link(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the kubelet set the variable in `environ` for a Service. The pod's own variable of
    such a name overrides it, and is not an address like ``tcp://10.0.0.1:80``."""
    match = _LINK.fullmatch(name)
    if match is None or f"{match['service']}_SERVICE_HOST" not in environ:
        return False
    return match["port"] is None or "://" in environ[name]
