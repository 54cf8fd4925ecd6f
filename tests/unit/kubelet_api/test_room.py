from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from dra_driver.kubelet_api.room import Room


def test_so_many_work_at_a_time_and_the_next_when_one_has_ended() -> None:
    room = Room(2, patience=5)
    working: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with room.entered():
            working.append(number)
            most.append(len(working))
            working.remove(number)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(200)))
    assert len(most) == 200
    assert max(most) <= 2


def test_who_is_held_up_holds_nobody_up() -> None:
    room = Room(1, patience=0.05)
    end = threading.Event()

    def hang() -> None:
        with room.entered():
            end.wait(30)

    hanging = threading.Thread(target=hang)
    hanging.start()
    for _ in range(2):
        with room.entered():
            assert hanging.is_alive()
    end.set()
    hanging.join(30)
