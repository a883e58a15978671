"""What a release restates agrees with pyproject.toml and the package."""

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

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


def archive_fields() -> dict[str, Any]:
    """The fields of an archive's metadata that `building/public_links.py` makes."""
    spec = importlib.util.spec_from_file_location("public_links", ROOT / "building" / "public_links.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fields: dict[str, Any] = module.dynamic_metadata({}, {"version": "1.2.3"})
    return fields


def test_a_release_has_absolute_links(monkeypatch: pytest.MonkeyPatch) -> None:
    forge = "https://forge.example/owner/widemargin"
    monkeypatch.setenv("WIDEMARGIN_REPOSITORY", forge)
    fields = archive_fields()
    text, links = fields["readme"]["text"], re.findall(r"\]\(([^)]+)\)", fields["readme"]["text"])
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert f"]({forge}/raw/v1.2.3/docs/images/covtype_accuracy.svg)" in text
    assert f"]({forge}/blob/v1.2.3/docs/tasks/index.md)" in text
    local = [link.partition("/v1.2.3/")[2].partition("#")[0] for link in links if link.startswith(forge)]
    assert not [path for path in local if not (ROOT / path).exists()]
    assert set(fields["urls"]) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}


def test_without_a_public_repository_the_readme_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIDEMARGIN_REPOSITORY", raising=False)
    assert archive_fields() == {"readme": {"text": read("README.md"), "content-type": "text/markdown"}}


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


def test_pillow_is_an_extra_alone() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert not [name for name in project["dependencies"] if name.startswith("pillow")]
    assert project["optional-dependencies"]["demo"] == ["pillow>=10.0"]
