"""The memory plan: shares of a phase add up to the budget at most, all are taken by name, and a plan prints itself."""

import re
import sys
from pathlib import Path

import pytest

import widemargin
from widemargin._memory import PHASES, SHARES, MemoryPlan, memory_plan

SOURCES = [path.read_text(encoding="utf-8") for path in Path(widemargin.__file__).parent.rglob("*.py")]
DERIVED = {"kernel values", "copies"}  # nobody asks for them: they follow from others


@pytest.mark.parametrize(("kind", "phase"), [(kind, phase) for kind in PHASES for phase in PHASES[kind]])
def test_the_shares_of_a_phase_add_up_to_the_budget_at_most(kind: str, phase: str) -> None:
    assert sum(SHARES[name].part for name in PHASES[kind][phase]) <= 1 + 1e-12


def test_every_share_has_a_phase_and_a_user() -> None:
    assert {name for phases in PHASES.values() for names in phases.values() for name in names} == set(SHARES)
    for name in SHARES.keys() - DERIVED:
        assert sum(f'"{name}"' in text for text in SOURCES) > 1, name


def test_nobody_else_takes_a_part_of_a_budget() -> None:
    part = re.compile(r"budget *//? *\d|/ memory budget|MEMORY_\w*SHARE")
    found = [line for text in SOURCES for line in text.splitlines() if part.search(line)]
    assert not found


def test_a_task_has_the_common_bytes_and_its_part_of_the_others() -> None:
    memory = MemoryPlan(1000)
    assert [memory.among(3).budget, memory.among(3, common=400).budget] == [333, 600]
    assert memory.among(2, "clusters", common=400).budget == 550
    assert memory.less(400)["shared matrix"] == 300


def test_a_plan_of_more_bytes_than_can_be_counted() -> None:
    assert memory_plan(widemargin.OCASClassifier(memory_budget=10**400))["vectors"] == (sys.maxsize + 1) // 2


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        (widemargin.DCSVMClassifier, "active matrix"),
        (widemargin.DCSVMRegressorCV, "active matrix"),
        (widemargin.OCASClassifierCV, "planes"),
    ],
)
def test_a_plan_prints_the_shares_of_its_estimator(kind: type, share: str) -> None:
    lines = str(memory_plan(kind(memory_budget="1GB"))).splitlines()
    assert lines[0] == "1,000,000,000 bytes"
    assert any(f"{int(SHARES[share].part * 10**9):,}  {share}: " in line for line in lines)
    assert ("planes" in str(lines)) == ("OCAS" in kind.__name__)
