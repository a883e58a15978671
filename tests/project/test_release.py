"""What a release restates agrees with pyproject.toml and the package."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import widemargin

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {widemargin.__version__}\n" in read("CITATION.cff")


def test_the_workflow_tests_the_versions_that_the_package_names() -> None:
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))
    assert tested is not None
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', read("pyproject.toml"))
    assert re.findall(r"3\.\d+", tested.group(1)) == named


def test_wheels_are_built_for_every_kind_of_machine() -> None:
    """Of 3.12 one by the stable ABI, which a Python without the GIL does not have."""
    settings, workflow = tomllib.loads(read("pyproject.toml")), read(".github/workflows/release.yml")
    wheels = settings["tool"]["cibuildwheel"]
    assert wheels["build"] == ["cp311-*", "cp312-*", "cp314t-*"]
    assert not any("musllinux" in kind or "arm64" in kind for kind in wheels["skip"])
    for machine in ("ubuntu-latest", "ubuntu-24.04-arm", "macos-latest", "windows-latest", "windows-11-arm"):
        assert re.search(rf"os: \[.*\b{machine}\b.*\]", workflow)
    assert settings["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"
    assert re.search(r"nanobind_add_module\(\S+ FREE_THREADED STABLE_ABI ", read("CMakeLists.txt"))


@pytest.mark.parametrize("name", ["nightly", "neighbours"])
def test_a_scheduled_workflow_runs_a_session(name: str) -> None:
    assert f"nox -s {name}" in read(f".github/workflows/{name}.yml")
    assert f"def {name}(session" in read("noxfile.py")


def test_actions_are_pinned_by_commit() -> None:
    """Of the index's own action the branch of releases: it must know today's metadata."""
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        for name, version in re.findall(r"uses: ([\w/-]+)@(.*)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", version) or name == "pypa/gh-action-pypi-publish"


def test_the_site_has_a_folder_for_each_version(tmp_path: Path) -> None:
    module = runpy.run_path(str(ROOT / "building" / "site_versions.py"))
    built, site = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    site.mkdir()
    for version in ("dev", "v0.9.0", "v0.10.0", "v0.9.0"):
        (built / "index.html").write_text(version)
        module["add_version"](built, site, "https://a.example/w", version)
    entries = json.loads((site / "switcher.json").read_text())
    assert [entry["version"] for entry in entries] == ["dev", "v0.10.0", "v0.9.0"]
    assert [entry["url"] for entry in entries if entry["preferred"]] == ["https://a.example/w/v0.10.0/"]
    assert "v0.10.0/" in (site / "index.html").read_text()
    assert (site / "v0.9.0" / "index.html").read_text() == "v0.9.0"
