from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dra_driver.node import frames

PAYLOADS = st.lists(
    st.text(st.characters(min_codepoint=1, max_codepoint=126), min_size=1).map(str.encode),
    max_size=6,
)
ROOM = bytes(64)


@given(PAYLOADS)
def test_what_was_written_is_read(payloads: list[bytes]) -> None:
    data = b"".join(map(frames.encode, payloads))
    found = frames.scan(data + ROOM)
    assert (found.payloads, found.end, found.damage) == (tuple(payloads), len(data), ())


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
    assert found.damage
    assert len(payloads) - len(found.payloads) <= 1
    assert len(set(lost)) <= 1


@given(PAYLOADS, st.data())
def test_a_cut_leaves_the_records_before_it(payloads: list[bytes], data: st.DataObject) -> None:
    encoded = [frames.encode(payload) for payload in payloads]
    content = b"".join(encoded)
    cut = data.draw(st.integers(0, len(content)))
    whole = 0
    while whole < len(encoded) and len(b"".join(encoded[: whole + 1])) <= cut:
        whole += 1
    assert frames.scan(content[:cut] + ROOM).payloads == tuple(payloads[:whole])


@given(st.binary(max_size=400))
def test_garbage_is_damage_and_no_error(garbage: bytes) -> None:
    found = frames.scan(garbage)
    covered = sum(len(payload) + 12 for payload in found.payloads)
    covered += sum(end - start for start, end in found.damage)
    assert covered == len(garbage.rstrip(b"\0"))


def test_a_hole_of_zeros_does_not_hide_what_follows() -> None:
    first, second, third = (frames.encode(text) for text in (b"one", b"two", b"three"))
    found = frames.scan(first + bytes(len(second)) + third)
    assert found.payloads == (b"one", b"three")
    assert found.damage == ((len(first), len(first) + len(second)),)
