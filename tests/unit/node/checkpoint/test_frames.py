from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.node.checkpoint import frames

PAYLOADS = st.lists(
    st.text(st.characters(min_codepoint=1, max_codepoint=126), min_size=1).map(str.encode),
    max_size=6,
)
ROOM = bytes(64)


@given(PAYLOADS)
def test_what_was_written_is_read(payloads: list[bytes]) -> None:
    data = b"".join(map(frames.encode, payloads))
    found = frames.scan(data + ROOM)
    assert found == frames.Scan(tuple(payloads), len(data), damage=(), torn=None)


@given(PAYLOADS, st.data())
def test_a_changed_byte_costs_one_record_at_most_and_never_goes_unseen(
    payloads: list[bytes], data: st.DataObject
) -> None:
    content = b"".join(map(frames.encode, payloads)) + ROOM
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.integers(1, 255))
    changed = content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]
    found = frames.scan(changed)
    lost = [
        payload for payload in payloads if found.payloads.count(payload) < payloads.count(payload)
    ]
    assert found.damage or found.torn
    assert len(payloads) - len(found.payloads) <= 1
    assert len(set(lost)) <= 1


@given(st.binary(max_size=400))
def test_garbage_is_damage_and_no_error(garbage: bytes) -> None:
    found = frames.scan(garbage)
    covered = sum(len(payload) + 12 for payload in found.payloads)
    covered += sum(end - start for start, end in (*found.damage, *([found.torn or (0, 0)])))
    assert covered == len(garbage.rstrip(b"\0"))


ONE, TWO, LONG = (frames.encode(text) for text in (b"one", b"two", b"long" * 400))


@pytest.mark.parametrize("frame", [TWO, LONG], ids=["short", "long"])
def test_a_frame_that_was_cut_is_the_end(frame: bytes) -> None:
    for cut in range(1, len(frame)):
        used = len((ONE + frame[:cut]).rstrip(b"\0"))
        found = frames.scan((ONE + frame[:cut]).ljust(len(ONE + frame) + 1, b"\0"))
        assert found == frames.Scan((b"one",), len(ONE), damage=(), torn=(len(ONE), used))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(ONE + TWO[:-1], id="no room behind it, so the file itself was cut"),
        pytest.param(ONE + TWO[:-1] + b"\0", id="no room for the byte behind it"),
        pytest.param(ONE + TWO[:-1] + bytes(20) + b"x" + ROOM, id="not cut but changed"),
        pytest.param(ONE + TWO[:5] + b"\x02" + TWO[6:] + ROOM, id="another length"),
        pytest.param(ONE + TWO[:4] + b"\x09" + TWO[5:] + ROOM, id="a greater length"),
        pytest.param(ONE + TWO[1:] + ROOM, id="no marker"),
        pytest.param(ONE[:-1] + TWO + ROOM, id="a whole frame follows"),
    ],
)
def test_what_else_is_wrong_is_damage(content: bytes) -> None:
    found = frames.scan(content)
    assert (bool(found.damage), found.torn) == (True, None)


def test_a_frame_whose_first_sector_was_not_written_is_the_end() -> None:
    """A disk writes a file's sectors in any order; what it has not written is still zeros."""
    lost = 512 - len(ONE)
    content = ONE + bytes(lost) + LONG[lost:] + bytes(100)
    assert frames.scan(content).torn == (len(ONE), len(ONE + LONG))
    assert frames.scan(content[len(ONE) :], len(ONE)).torn == (0, len(LONG))
    assert frames.scan(content).damage == ()
    # It was answered, if one was written after it that needed no other sector.
    assert frames.scan(ONE + bytes(len(LONG)) + TWO + ROOM).torn is None


@given(st.data())
def test_no_loss_of_power_is_damage_where_no_whole_frame_follows(data: st.DataObject) -> None:
    """Of each sector the disk has what was there when it last wrote it: at the last sync or after
    any of the frames that came since."""
    lengths = st.lists(st.integers(1, 1500), min_size=1, max_size=4)
    synced = b"".join(frames.encode(b"s" * each) for each in data.draw(lengths))
    group = [frames.encode(bytes([97 + n]) * each) for n, each in enumerate(data.draw(lengths))]
    size = len(synced + b"".join(group)) + 600
    versions = [(synced + b"".join(group[:n])).ljust(size, b"\0") for n in range(len(group) + 1)]
    content = b"".join(
        data.draw(st.sampled_from(versions))[start : start + 512] for start in range(0, size, 512)
    )
    found = frames.scan(content)
    whole = [each[12:] in found.payloads for each in group]
    assert found.payloads[: len(frames.scan(synced).payloads)] == frames.scan(synced).payloads
    in_order = whole == sorted(whole, reverse=True)
    assert not found.damage or not in_order
    if found.torn is not None:
        assert len(synced) <= found.torn[0]


def test_a_hole_of_zeros_does_not_hide_what_follows() -> None:
    first, second, third = (frames.encode(text) for text in (b"one", b"two", b"three"))
    found = frames.scan(first + bytes(len(second)) + third)
    assert found.payloads == (b"one", b"three")
    assert found.damage == ((len(first), len(first) + len(second)),)
