"""Objects that a cluster has for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dra_driver.model.claims.claim import Object
from tests.cluster.calls import object_path
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError

_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@contextmanager
def applied(cluster: Cluster, *objects: Object) -> Iterator[None]:
    """Within it the cluster has these objects; afterwards it has again what it had in their place,
    or nothing."""
    before = [_stored(cluster, wanted) for wanted in objects]
    cluster.apply(*objects)
    try:
        yield
    finally:
        for wanted, stored in reversed([*zip(objects, before, strict=True)]):
            if stored is None:
                cluster.call("DELETE", object_path(wanted))
            else:
                cluster.apply(stored)


def _stored(cluster: Cluster, wanted: Object) -> Object | None:
    """The object as it could be applied again; None if there is none."""
    try:
        stored = cluster.call("GET", object_path(wanted))
    except CommandError as error:
        if "(NotFound)" in error.output:
            return None
        raise
    metadata = {key: stored["metadata"][key] for key in stored["metadata"].keys() - {*_SERVERS_OWN}}
    kept = {key: stored[key] for key in stored.keys() - {"status"}}
    return kept | {"metadata": metadata}
