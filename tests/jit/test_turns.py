"""Turns: each number for one thread alone."""

from __future__ import annotations

import threading

import numpy as np

from widemargin._jit.turns import take_turn


def test_every_number_once() -> None:
    turn, taken = np.zeros(1, np.int64), [[], [], []]
    take_turn(turn)  # compiled by now

    def take(mine: list[int]) -> None:
        while (number := take_turn(turn)) < 3000:
            mine.append(number)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in taken)
    assert sorted(number for mine in taken for number in mine) == list(range(1, 3000))
