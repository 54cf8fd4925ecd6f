"""The arguments of ``kubectl gcu``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER
from dra_driver.version import VERSION

_FORMS: Final = ("table", "json", "yaml")
_KINDS_OF_STATE: Final = (
    "resourceslices,deviceclasses,namespaces,nodes,pods,resourceclaims,resourceclaimtemplates"
)


def parser() -> argparse.ArgumentParser:
    """`command` of what it parses is the name of the command."""
    root = argparse.ArgumentParser(
        prog="kubectl gcu",
        description="Shows the GCUs of a cluster, and why pods wait for them. It writes nothing.",
    )
    root.add_argument("--version", action="version", version=f"kubectl-gcu {VERSION}")
    commands = root.add_subparsers(required=True, metavar="COMMAND", dest="command")
    _inspect(commands)
    _explain(commands)
    _plan(commands)
    _doctor(commands)
    _view(commands)
    return root


def _inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    made = commands.add_parser(
        "inspect",
        help="every card: its mode, its health, and who holds it",
        description="Shows every card: its mode, its health, and which claim, pod and container "
        "holds it. Exit codes: 0, all is shown; 1, nothing can be; 2, wrong usage; 3, a part.",
    )
    made.add_argument("node", nargs="?", default="", help="show this node alone")
    _common(
        made,
        (*_FORMS, "wide", "gcushare", "gcushare-drs"),
        "where claims and pods are read",
        "wide has the minor, UUID, memory, and what is free; gcushare and gcushare-drs look as in "
        "gcushare's inspect",
    )


def _explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    made = commands.add_parser(
        "explain",
        help="what a pod with GCUs waits for, and what would help",
        description="Says in which step of its start a pod is, who acts next, and what would help. "
        "With the right to list slices, claims, nodes and pods of the cluster the driver's own "
        "allocator decides on what is there now. Exit codes: 0, nothing waits; 1, there is no such "
        "object; 2, wrong usage; 3, something is not seen, for want of a right; 4, it waits.",
    )
    made.add_argument(
        "kind",
        choices=("pod", "claim", "podgroup"),
        help="a claim stands for its pods; a podgroup is explained as a whole",
    )
    made.add_argument("name")
    _common(made, _FORMS, "of the object")


def _plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    made = commands.add_parser(
        "plan",
        help="whether the pods of a manifest would get their GCUs, and where",
        description="Places the pods of a manifest one after the other on the cluster as it is, "
        "and says what would be left; nothing is written. Pods, Deployments, ReplicaSets, "
        "StatefulSets and Jobs, with their claims, claim templates and PodGroups. Exit codes: 0, "
        "all fit; 1, nothing can be planned; 2, wrong usage; 3, something is not seen, for want of "
        "a right; 4, a pod does not fit.",
    )
    made.add_argument("-f", "--file", required=True, help="the manifest; - is standard input")
    made.add_argument(
        "--state",
        type=Path,
        help="plan on this saved state, and ask no server; it is what `kubectl get "
        f"{_KINDS_OF_STATE} -A -o json` prints",
    )
    _common(made, _FORMS, "of objects that name none")


def _doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    made = commands.add_parser(
        "doctor",
        help="what is wrong with the driver and its cards",
        description="One line for each thing that is wrong: where, what, remedy. Exit codes: 0, "
        "nothing is; 1, the cluster cannot be read; 2, wrong usage; 3, something is not seen, for "
        "want of a right; 4, something is wrong.",
    )
    made.add_argument(
        "--allocator",
        choices=(ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER),
        default="",
        help="also list what this allocator would refuse: before `allocator` of the chart changes",
    )
    _common(made, _FORMS, "where claims and pods are read")


def _view(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    made = commands.add_parser(
        "view",
        help="a page that shows the cards and the waiting pods, and follows the cluster",
        description="Serves a page on 127.0.0.1, with your own rights, and opens it in a browser. "
        "Nothing runs in the cluster. Exit codes: 0, it was ended; 1, the cluster cannot be read; "
        "2, wrong usage.",
    )
    made.add_argument(
        "-o", "--output", type=Path, help="write the page of this moment to a file, and end"
    )
    made.add_argument("--no-open", action="store_true", help="only print the address")
    made.add_argument("--port", type=int, default=0, help="by default any free port")
    _cluster(made, "where claims and pods are read")


def _common(
    made: argparse.ArgumentParser, forms: tuple[str, ...], namespace: str, about_forms: str = ""
) -> None:
    made.add_argument("-o", "--output", choices=forms, default="table", help=about_forms)
    _cluster(made, namespace)


def _cluster(made: argparse.ArgumentParser, namespace: str) -> None:
    if namespace.startswith("where"):
        namespace += " if you may not read all namespaces"
    made.add_argument("-n", "--namespace", default="", help=namespace)
    made.add_argument("--kubeconfig", type=Path, help="the kubeconfig file, as of kubectl")
    made.add_argument("--context", default="", help="the context in it; by default the current one")
