"""A journal with a damage, and what must be left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import Record, encode
from tests.unit.node.journals import CAPACITY, opened, prepared, uids

SMALL: Final = b"".join(
    frames.encode(encode(raw))
    for raw in (
        {"kind": "header", "format": "gcu-dra-journal", "version": 1},
        prepared(1).raw,
        prepared(2).raw,
    )
)
"""A header and two claims."""


def open_flipped(folder: Path, place: int) -> None:
    """A byte is another one, of the records or of the room behind them."""
    content = bytearray(SMALL + bytes(100))
    content[place] ^= 0x41
    (folder / "journal").write_bytes(content)
    journal = Journal(folder, capacity=CAPACITY)
    assert not is_complete(journal)
    assert len(uids(journal)) >= 1
    [aside] = damaged(folder)
    assert aside.read_bytes() == bytes(content)
    # What was damaged is gone from the file itself: the next start is a clean one.
    journal.mark_rebuilt(journal.losses)
    assert is_complete(Journal(folder, capacity=CAPACITY))
    assert damaged(folder) == [aside]


def open_cut(folder: Path, length: int) -> None:
    """The file ends early."""
    (folder / "journal").write_bytes(SMALL[:length])
    whole = [
        raw
        for end, raw in zip(ends(SMALL), (None, "uid-1", "uid-2"), strict=True)
        if end <= length and raw
    ]
    journal = opened(folder)
    assert sorted(uids(journal)) == whole
    journal.write(prepared(3))
    assert sorted(uids(opened(folder))) == [*whole, "uid-3"]


def open_torn(folder: Path, length: int) -> None:
    """The last record was written up to `length` bytes of the file, which has its full length."""
    (folder / "journal").write_bytes(SMALL[:length].ljust(CAPACITY, b"\0"))
    whole = sorted(f"uid-{at}" for at, end in enumerate(ends(SMALL)) if at and end <= length)
    journal = Journal(folder, capacity=CAPACITY)
    # The header was there before the first record: only damage takes a part of it.
    is_torn = length >= ends(SMALL)[0]
    assert (is_complete(journal), not damaged(folder)) == (is_torn, is_torn)
    assert sorted(uids(journal)) == whole
    journal.write(prepared(3))
    assert sorted(uids(opened(folder))) == [*whole, "uid-3"]


def append_torn(folder: Path, record: Record) -> None:
    """The half of a record, as a process leaves it that is killed while it writes."""
    path = folder / "journal"
    content = path.read_bytes()
    frame = frames.encode(encode(record.raw))
    torn = content.rstrip(b"\0") + frame[: len(frame) // 2]
    path.write_bytes(torn.ljust(len(content), b"\0"))


def ends(content: bytes) -> list[int]:
    """Where each frame ends."""
    payloads = frames.scan(content).payloads
    lengths = [len(frames.encode(payload)) for payload in payloads]
    return [sum(lengths[: at + 1]) for at in range(len(lengths))]


def damage(journal: Path, words: str) -> None:
    """Flip bits of each record that has these words."""
    content = journal.read_bytes()
    assert words.encode() in content
    journal.write_bytes(content.replace(words.encode(), words.swapcase().encode()))


def is_complete(journal: Journal) -> bool:
    """Whether it is after it was opened."""
    journal.open()
    return journal.is_complete


def damaged(directory: Path) -> list[Path]:
    """The damaged journals that were moved aside."""
    return sorted(directory.glob("journal.damaged-*"))
