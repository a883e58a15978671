"""Turns: each number for one thread alone, and who waits for whom."""

from __future__ import annotations

import threading
import time

import numpy as np

from widemargin._jit import turns


def test_every_number_once() -> None:
    turn, taken = turns.new_turn(0), [[], [], []]
    turns.take_turn(turn, 3000)  # compiled by now

    def take(mine: list[int]) -> None:
        while (number := turns.take_turn(turn, 3000)) < 3000:
            mine.append(number)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in taken)
    assert sorted(number for mine in taken for number in mine) == list(range(1, 3000))


def test_there_are_no_turns_beyond_the_last() -> None:
    turn = turns.new_turn(0)
    assert [turns.take_turn(turn, 2) for _ in range(4)] == [0, 1, 2, 2]


def test_a_caller_waits_for_its_helpers_and_they_for_nobody() -> None:
    turn = turns.new_turn(2)
    assert turns.take_turn(turns.helpers_part(turn), 0) == 0
    asked = np.zeros(1, np.int64)
    assert turns.still_busy(turn) == 2
    back = []

    def come_back() -> None:
        time.sleep(0.01)
        for _ in range(2):
            back.append(time.perf_counter())
            turns.wait_for_work(turns.still_busy(turn), asked, 0, 0)

    helper = threading.Thread(target=come_back)
    helper.start()
    while turns.still_busy(turn) > 0:
        turns.wait_for_helpers(turns.still_busy(turn), 1000)
    assert len(back) == 2
    helper.join()
    assert turns.take_turn(turn, 0) == 0


def test_who_is_asked_sees_it() -> None:
    turn, asked = turns.new_turn(1), np.zeros(1, np.int64)
    turns.begin(asked, 7, turn)  # nobody is there: it comes back all the same
    assert asked == 7
    turns.wait_for_work(turns.still_busy(turn), asked, 0, 10**6)
    assert turns.still_busy(turn) == 0
