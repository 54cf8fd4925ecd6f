"""Draws mutants by a seed, from one folder of the programs after the other."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from random import Random
from typing import Final

from tests.mutants.edits import Edit, Kind, edits, is_fault
from tests.mutants.mutant import Mutant

PROGRAMS: Final = ("dra_driver", "controller", "kubectl_gcu")
"""The packages whose code mutants are drawn from."""

_GENERATED: Final = "generated"


def sources(checkout: Path) -> dict[str, str]:
    """The text of each source file of the programs, by its path in the checkout; without code that
    is generated."""
    paths = [path for package in PROGRAMS for path in (checkout / package).rglob("*.py")]
    return {
        path.relative_to(checkout).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(paths)
        if _GENERATED not in path.parts
    }


def draw(texts: Mapping[str, str], *, seed: int, count: int) -> list[Mutant]:
    """`count` different mutants of these files, or as many as there are.

    Each folder gives one in turn, in an order of the seed. Its kind is drawn first, so that
    frequent kinds do not displace the others.
    """
    random = Random(seed)
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(texts):
        folders[str(PurePosixPath(file).parent)].append(file)
    turns = deque(
        _of_folder([(file, texts[file]) for file in folders[name]], Random(random.random()))
        for name in random.sample(sorted(folders), len(folders))
    )
    drawn: list[Mutant] = []
    while turns and len(drawn) < count:
        turn = turns.popleft()
        found = next(turn, None)
        if found is not None:
            drawn.append(found)
            turns.append(turn)
    return drawn


def _of_folder(files: Sequence[tuple[str, str]], random: Random) -> Iterator[Mutant]:
    """All mutants of a folder, in a random order; those that do not compile are left out."""
    kinds: defaultdict[Kind, list[tuple[str, str, Edit]]] = defaultdict(list)
    for file, text in files:
        for edit in edits(text):
            kinds[edit.kind].append((file, text, edit))
    for each in kinds.values():
        random.shuffle(each)
    while kinds:
        kind = random.choice(sorted(kinds))
        file, text, edit = kinds[kind].pop()
        if not kinds[kind]:
            del kinds[kind]
        if is_fault(text, edit):
            yield Mutant.of(file, text, edit)
