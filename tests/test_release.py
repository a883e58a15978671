"""What a release restates agrees with pyproject.toml and the package."""

import re
import tomllib
from pathlib import Path

import pytest

import widemargin

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "recipe").is_dir(), reason="not shipped")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(names: list[str]) -> set[str]:
    return {name.replace(" ", "") for name in names}


def test_the_recipe_needs_what_the_package_needs() -> None:
    settings = tomllib.loads(read("pyproject.toml"))
    sections = dict(re.findall(r"^  (host|run):\n((?:    - .*\n)+)", read("recipe/meta.yaml"), re.MULTILINE))
    listed = {name: requirements(re.findall(r"- (.*)", text)) for name, text in sections.items()}
    python = "python" + settings["project"]["requires-python"]
    assert listed["run"] == requirements(settings["project"]["dependencies"]) | {python}
    assert listed["host"] == requirements(settings["build-system"]["requires"]) | {python, "pip"}


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {widemargin.__version__}\n" in read("CITATION.cff")


def test_the_workflow_tests_the_versions_that_the_package_names() -> None:
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))
    assert tested is not None
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', read("pyproject.toml"))
    assert re.findall(r"3\.\d+", tested.group(1)) == named
