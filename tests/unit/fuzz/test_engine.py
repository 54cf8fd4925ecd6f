"""That a parser which does what none may do is found out."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from dra_driver.model.errors import GcuError, InvalidValue
from tests.fuzz.engine import Flaw, Subject, input_of, play
from tests.fuzz.hostile import Damaged, DamagedJson
from tests.fuzz.subjects import SUBJECTS

MAKE = Damaged([b"index 0 card 0000:0d:00.0\nindex 1 card 0000:0e:00.0\n"])
BRIEF = 0.1  # seconds
ELSEWHERE = Path("/tmp/planted-by-a-parser")


def crash(data: bytes, folder: Path) -> object:
    return int(data)


def hang(data: bytes, folder: Path) -> object:
    end = time.process_time() + 2 * BRIEF
    while time.process_time() < end:
        pass
    return data


def recurse(data: bytes, folder: Path) -> object:
    return recurse(data, folder)


def write_elsewhere(data: bytes, folder: Path) -> object:
    return ELSEWHERE.write_bytes(data)


def write_above(data: bytes, folder: Path) -> object:
    return (folder / ".." / "planted").write_bytes(data)


def make_a_folder(data: bytes, folder: Path) -> object:
    fd = os.open("/tmp", os.O_RDONLY)
    try:
        os.mkdir(ELSEWHERE.name, dir_fd=fd)
    finally:
        os.close(fd)
    return data


def move_out(data: bytes, folder: Path) -> object:
    (folder / "a").touch()
    return (folder / "a").rename(ELSEWHERE)


def start_a_program(data: bytes, folder: Path) -> object:
    return subprocess.run(["true"], check=True)


def catch_all(data: bytes, folder: Path) -> object:
    try:
        return write_elsewhere(data, folder)
    except Exception as error:
        raise GcuError("swallowed") from error


FLAWS: list[Callable[[bytes, Path], object]] = [
    *(crash, hang, recurse, write_elsewhere, write_above, make_a_folder, move_out),
    *(start_a_program, catch_all),
]


@pytest.mark.parametrize("parse", FLAWS, ids=lambda parse: parse.__name__)
def test_a_flaw_is_told_with_its_input(
    tmp_path: Path, parse: Callable[[bytes, Path], object]
) -> None:
    with pytest.raises(Flaw, match=r"again: make fuzz PARSER=flawed SEED=7 FIRST=3 INPUTS=1"):
        play(Subject("flawed", MAKE, parse), range(3, 4), seed=7, folder=tmp_path, most=BRIEF)
    assert not ELSEWHERE.exists()
    assert not (tmp_path.parent / "planted").exists()


def test_what_is_refused_and_what_is_written_in_the_folder_is_right(tmp_path: Path) -> None:
    def parse(data: bytes, folder: Path) -> object:
        (folder / "here").write_bytes(data)
        if len(data) % 2:
            raise InvalidValue("odd")
        return data

    tally = play(Subject("good", MAKE, parse), range(100), seed=0, folder=tmp_path)
    assert tally.taken + tally.refused == tally.inputs == 100
    assert 0 < tally.taken < 100
    # Nobody is confined any more.
    (tmp_path.parent / "free").touch()


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_an_input_is_the_same_again(subject: Subject) -> None:
    assert [input_of(subject, 1, n) for n in range(20)] == [
        input_of(subject, 1, n) for n in range(20)
    ]
    assert input_of(subject, 1, 0) != input_of(subject, 2, 0)


def test_texts_of_the_api_server_stay_texts_but_below_what_is_free() -> None:
    recorded = {"name": "a", "count": 1, "list": [{"x": "y"}], "parameters": {"deep": {"a": 1}}}
    make = DamagedJson([recorded], strings_only=True, free=["parameters"])
    odd = 0
    for seed in range(300):
        document = json.loads(make(Random(seed)))
        odd += document.get("parameters") != recorded["parameters"]
        assert document.keys() - {"parameters"} == recorded.keys() - {"parameters"}
        assert document["count"] == 1
        assert type(document["name"]) is type(document["list"][0]["x"]) is str
    assert odd
