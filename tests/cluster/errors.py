"""What can go wrong with the test cluster.

ClusterError            something the test cluster was asked to do failed
├── BuildError          a program could not be built or a package not installed
├── CommandError        a program that was run to its end exited with an error
└── WaitTimeout         something awaited did not come in time
"""

from __future__ import annotations

from collections.abc import Sequence


class ClusterError(Exception):
    """Says what happened, to what, and what to do about it."""


class BuildError(ClusterError):
    """A program that the cluster needs is not there and could not be made."""


class CommandError(ClusterError):
    """A command exited with a status other than 0."""

    def __init__(self, command: Sequence[str], status: int, output: str) -> None:
        super().__init__(f"{' '.join(command)}: exit status {status}\n{output.rstrip()}")
        self.status = status
        self.output = output


class WaitTimeout(ClusterError):
    """The text names what was awaited, for how long, and what was seen last."""
