"""The configuration: read, set, restored, seen by workers, and refused in clear words."""

import threading

import numpy as np
import pytest

from widemargin import _config
from widemargin._config import config_context, get_config, resolve_memory_budget, set_config
from widemargin._threads import ThreadTeam, run

MIB, GIB = 2**20, 2**30


def test_defaults() -> None:
    assert get_config() == {"memory_budget": None, "block_bytes": MIB}


def test_get_config_returns_a_copy() -> None:
    get_config()["block_bytes"] = 1
    assert get_config()["block_bytes"] == MIB


def test_set_config_lasts_inside_the_context_only() -> None:
    with config_context():
        set_config(memory_budget="1GB", block_bytes=1000)
        assert get_config() == {"memory_budget": "1GB", "block_bytes": 1000}
    assert get_config() == {"memory_budget": None, "block_bytes": MIB}


def test_contexts_nest_and_restore_after_an_error() -> None:
    with config_context(block_bytes=100):
        with config_context(block_bytes=200):
            assert get_config()["block_bytes"] == 200
        with pytest.raises(ZeroDivisionError), config_context(block_bytes=200):
            1 / 0  # noqa: B018
        assert get_config()["block_bytes"] == 100


def test_a_thread_of_its_own_starts_from_the_defaults() -> None:
    seen = []
    with config_context(block_bytes=100):
        thread = threading.Thread(target=lambda: seen.append(get_config()["block_bytes"]))
        thread.start()
        thread.join()
    assert seen == [MIB]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_see_the_callers_configuration(n_jobs: int) -> None:
    with config_context(block_bytes=100), ThreadTeam(n_jobs) as team:
        assert run([lambda: get_config()["block_bytes"]] * 4, n_jobs) == [100] * 4
        assert team.map(lambda _: get_config()["block_bytes"], range(4)) == [100] * 4


@pytest.mark.parametrize(
    ("value", "n_bytes"),
    [
        (1, 1),
        (2e8, 200_000_000),
        (np.int64(5000), 5000),
        (np.float32(5000), 5000),
        (10**400, 10**400),
        ("123", 123),
        ("200MB", 200_000_000),
        (" 200 mb ", 200_000_000),
        ("64kB", 64_000),
        ("1.5GiB", 3 * GIB // 2),
        (".5TiB", 2**39),
        ("7 b", 7),
    ],
)
def test_memory_budget_in_bytes(value: object, n_bytes: int) -> None:
    assert resolve_memory_budget(value) == n_bytes
    with config_context(memory_budget=value):
        assert resolve_memory_budget() == n_bytes


BAD = [0, -1, 0.5, float("nan"), float("inf"), True, "", "much", "-5MB", "1e9", "10 apples", "200 M", b"200MB", [1]]


@pytest.mark.parametrize("value", BAD)
def test_bad_memory_budget_is_named_with_its_value(value: object) -> None:
    with pytest.raises(ValueError, match="memory_budget") as caught:
        resolve_memory_budget(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", ["memory_budget", "block_bytes"])
def test_a_bad_setting_changes_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        set_config(**{"block_bytes": 100, "memory_budget": 10**9, name: -1})
    assert get_config() == {"memory_budget": None, "block_bytes": MIB}


def test_unknown_setting() -> None:
    with pytest.raises(TypeError, match="'memory'"):
        set_config(memory=1)


@pytest.mark.parametrize(("physical", "budget"), [(GIB // 2, 256 * MIB), (8 * GIB, 2 * GIB), (256 * GIB, 4 * GIB)])
def test_default_budget_is_a_clipped_quarter_of_the_memory(
    physical: int, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_config, "_physical_memory", lambda: physical)
    assert _config._default_budget.__wrapped__() == budget


def test_a_container_limits_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_config, "_container_limit", lambda: 10)
    assert _config._physical_memory() == 10


def test_a_system_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sysconf")
    assert _config._physical_memory() == 4 * GIB
