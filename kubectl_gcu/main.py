"""``kubectl gcu``: the command line.

Exit codes: 0, all is shown, and nothing waits; 1, the cluster cannot be read, or has no such
object; 2, wrong usage; 3, something is not shown, because the user lacks a right or an annotation
cannot be read; 4, the pod waits, or something is wrong.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final, TextIO

from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.http.kubeconfig import current_namespace
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.version import VERSION
from kubectl_gcu import output
from kubectl_gcu.arguments import parser
from kubectl_gcu.checks.doctor import findings
from kubectl_gcu.checks.installation import read_installation
from kubectl_gcu.cluster.manifest import load_documents, parse_manifest
from kubectl_gcu.cluster.saved import SavedState
from kubectl_gcu.cluster.state import read_cluster
from kubectl_gcu.cluster.to_decide import objects_to_decide
from kubectl_gcu.gcushare import as_gcushare
from kubectl_gcu.inventory.groups import groups
from kubectl_gcu.inventory.nodes import inventory
from kubectl_gcu.inventory.views import Totals
from kubectl_gcu.scheduling.explain import explain_pod, pods_of_claim
from kubectl_gcu.scheduling.explain_group import explain_group, group_lines
from kubectl_gcu.scheduling.explanation import lines
from kubectl_gcu.scheduling.plan import Planner

FAILED, PARTIAL, WAITS, WRONG = 1, 3, 4, 4
_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def main() -> None:
    try:
        code = run(sys.argv[1:], os.environ, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # as by `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it again
        code = FAILED
    sys.exit(code)


def run(arguments: Sequence[str], environ: Mapping[str, str], out: TextIO, errors: TextIO) -> int:
    """Run one command; returns the exit code. argparse exits by itself with 2."""
    options = parser().parse_args(arguments)
    try:
        if options.command == "plan" and options.state:
            state = SavedState(options.state)
            return _show_plan(state.objects, state.template, options, out)
        kubeconfig = options.kubeconfig or _kubeconfig(environ)
        client = connect(
            kubeconfig,
            effects=Effects(),
            user_agent=f"kubectl-gcu/{VERSION}",
            context=options.context,
        )
        with closing(client):
            options.namespace = options.namespace or _namespace(kubeconfig, options.context)
            return _COMMANDS[options.command](client, options, out, errors)
    except GcuError as error:
        _say(f"error: {error}", errors)
        return FAILED


def _say(text: str, to: TextIO) -> None:
    to.writelines(f"{output.plain(line)}\n" for line in text.splitlines())


def _warn(sentences: Iterable[str], errors: TextIO) -> None:
    for sentence in filter(None, sentences):
        _say(f"warning: {sentence}", errors)


def _show(out: TextIO, form: str, lines: Iterable[str], data: object) -> None:
    """The lines for people, or the data for programs."""
    if form == "table":
        out.writelines(f"{output.plain(line)}\n" for line in lines)
    else:
        out.write(output.as_text(form, data))


def _inspect(api: Api, options: Namespace, out: TextIO, errors: TextIO) -> int:
    state = read_cluster(api, options.namespace)
    nodes, missing = inventory(state)
    found = tuple(groups(state, options.node))
    if options.node:
        nodes = [each for each in nodes if each.name == options.node]
    _warn(missing, errors)
    if not nodes and (options.node or not missing):
        where = f"the node {options.node}" if options.node else "the cluster"
        seen = " that you see" if missing else ""
        _say(f"error: {where} has no GCUs of this driver{seen}", errors)
        return FAILED
    match options.output:
        case "json" | "yaml":
            data = output.as_data(nodes, missing) | {"groups": output.as_object(found)}
            text = output.as_text(options.output, data)
        case "gcushare" | "gcushare-drs":
            mode = Mode.DRS if options.output == "gcushare-drs" else Mode.SHARED
            text = as_gcushare(nodes, mode, one=bool(options.node))
        case _:
            text = output.table(nodes, wide=options.output == "wide", colour=out.isatty())
            text += "".join(f"{output.plain(str(each))}\n" for each in found)
    out.write(text)
    return PARTIAL if missing else 0


def _explain(api: Api, options: Namespace, out: TextIO, errors: TextIO) -> int:
    if options.kind == "podgroup":
        return _explain_group(api, options, out, errors)
    names = [options.name]
    if options.kind == "claim":
        names = pods_of_claim(api, options.namespace, options.name)
        if not names and options.output == "table":
            _say("no pod uses the claim; it is allocated for the first pod that does", out)
            return 0
    now = datetime.now(UTC)
    explained = [explain_pod(api, options.namespace, name, now=now) for name in names]
    words = chain.from_iterable(map(lines, explained))
    _show(out, options.output, words, [output.as_object(pod) for pod in explained])
    _warn((pod.missing for pod in explained), errors)
    if any(pod.step.who for pod in explained):
        return WAITS
    return PARTIAL if any(pod.missing for pod in explained) else 0


def _explain_group(api: Api, options: Namespace, out: TextIO, errors: TextIO) -> int:
    found = explain_group(api, options.namespace, options.name)
    _show(out, options.output, group_lines(found), output.as_object(found))
    _warn([found.missing], errors)
    if found.who:
        return WAITS
    return PARTIAL if found.missing else 0


def _doctor(api: Api, options: Namespace, out: TextIO, errors: TextIO) -> int:
    installation = read_installation(api, options.namespace, with_templates=bool(options.allocator))
    nodes, missing = inventory(installation.state)
    missing += installation.unread
    now = datetime.now(UTC)
    wrong = list(findings(installation, nodes, now, allocator=options.allocator))
    _warn(missing, errors)
    words = [str(finding) for finding in wrong] or ["nothing is wrong that can be seen"]
    _show(out, options.output, words, [output.as_object(finding) for finding in wrong])
    if wrong:
        return WRONG
    return PARTIAL if missing else 0


def _plan(api: Api, options: Namespace, out: TextIO, errors: TextIO) -> int:
    objects, missing = objects_to_decide(api)
    if not objects:
        _say(f"error: {missing.partition(',')[0]}, and so nothing can be planned", errors)
        return FAILED
    _warn([missing], errors)

    def template(namespace: str, name: str) -> Object:
        return api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace)

    code = _show_plan(objects, template, options, out)
    return code or (PARTIAL if missing else 0)


def _show_plan(
    objects: Mapping[Resource, tuple[Object, ...]],
    template: Callable[[str, str], Object],
    options: Namespace,
    out: TextIO,
) -> int:
    manifest = parse_manifest(load_documents(options.file), options.namespace or "default")
    planner = Planner(objects, manifest, template)
    pods = planner.plan()
    left = planner.left()
    totals = Totals.of(card for node in left for card in node.cards)
    words = [*map(str, pods), f"then: {output.totals_text(totals)}", planner.packing]
    data = {"pods": [output.as_object(each) for each in pods], "left": output.as_data(left, ())}
    _show(out, options.output, words, data)
    return 0 if all(each.fits for each in pods) else WAITS


def _kubeconfig(environ: Mapping[str, str]) -> Path | None:
    """As kubectl finds it; None in a pod without one, where the service account is used."""
    if environ.get("KUBECONFIG"):
        return Path(environ["KUBECONFIG"])  # also several, which are merged
    default = Path(environ.get("HOME", "/")) / ".kube" / "config"
    if environ.get("KUBERNETES_SERVICE_HOST") and not os.access(default, os.R_OK):
        return None
    return default


def _namespace(kubeconfig: Path | None, context: str) -> str:
    """That of the kubeconfig's context; in a pod that of its service account."""
    if kubeconfig is None:
        return _NAMESPACE_OF_POD.read_text(encoding="utf-8")
    return current_namespace(kubeconfig, context)


def _view(api: Api, options: Namespace, out: TextIO, _errors: TextIO) -> int:
    # Imported here: no other command needs what it stands on.
    from kubectl_gcu.view.command import view  # noqa: PLC0415

    stop = threading.Event()
    logging.getLogger().addHandler(logging.NullHandler())  # the page says what is lost
    with _ended_by_signals(stop):
        view(api, options, out, stop)
    return 0


@contextmanager
def _ended_by_signals(stop: threading.Event) -> Iterator[None]:
    """Within it, what ends a program sets `stop`."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_COMMANDS: Final = {
    "inspect": _inspect,
    "explain": _explain,
    "plan": _plan,
    "doctor": _doctor,
    "view": _view,
}

if __name__ == "__main__":
    main()
