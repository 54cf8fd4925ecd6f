"""The openb trace as claims for GCUs (bench/data/README.md has its source).

The mapping: pods without a GPU are left out; k > 1 GPUs become k claims for a whole card; the share
of one GPU is rounded up to slices of a sixth, the whole of it is a whole card; latency-sensitive
and guaranteed pods take DRS instances (of size 1, 3 or 6), the others shared slices.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_PODS = "openb_pod_list_default.csv"
_NODES = "openb_node_list_gpu_node.csv"
_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "data", _HERE.parent.parent / "shared" / "data")
_SLICES = 6
_SIZES = (1, 3, 6)


@dataclass(frozen=True, slots=True)
class Job:
    """A claim and its pod: slices of each of `cards` asked in a mode, cpu (milli) and memory (MiB)
    of the pod, and the seconds between which it runs."""

    mode: str
    slices: int
    cpu: int
    memory: int
    start: int
    end: int
    cards: int = 1


def load() -> list[Job]:
    """The trace in the order of its rows. Raises FileNotFoundError with the remedy."""
    return [job for row in _rows(_PODS) for job in _jobs(row)]


def load_pods() -> list[Job]:
    """The same with one job for all cards of a pod. Raises FileNotFoundError with the remedy."""
    pods = [list(_jobs(row)) for row in _rows(_PODS)]
    return [replace(jobs[0], cards=len(jobs)) for jobs in pods if jobs]


def models() -> Counter[str]:
    """How many nodes with 8 GPUs have which model. Raises FileNotFoundError with the remedy."""
    return Counter(row["model"] for row in _rows(_NODES) if row["gpu"] == "8")


def _rows(name: str) -> Iterator[dict[str, str]]:
    given = os.environ.get("GCU_BENCH_TRACE")
    for folder in (Path(given), *_FOLDERS) if given else _FOLDERS:
        if (folder / name).exists():
            with (folder / name).open(newline="", encoding="utf-8") as file:
                yield from csv.DictReader(file)
                return
    raise FileNotFoundError(f"{name} is not there; bench/data/README.md says where to get it")


def in_mode(jobs: Sequence[Job], mode: str) -> list[Job]:
    """The same with all parts of cards in one mode."""
    return [job if job.mode == "whole" else _rounded(replace(job, mode=mode)) for job in jobs]


def _jobs(row: dict[str, str]) -> Iterator[Job]:
    gpus, share = int(row["num_gpu"]), int(row["gpu_milli"])
    if not gpus:
        return
    job = Job(
        mode="drs" if row["qos"] in {"LS", "Guaranteed"} else "shared",
        slices=max(1, math.ceil(share * _SLICES / 1000)),
        cpu=int(row["cpu_milli"]) // gpus,
        memory=int(row["memory_mib"]) // gpus,
        start=int(row["creation_time"]),
        end=int(row["deletion_time"]),
    )
    if gpus > 1 or share == 1000:
        yield from (replace(job, mode="whole", slices=_SLICES) for _ in range(gpus))
    else:
        yield _rounded(job)


def _rounded(job: Job) -> Job:
    if job.mode != "drs":
        return job
    return replace(job, slices=next(size for size in _SIZES if job.slices <= size))
