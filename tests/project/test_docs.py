"""Pages of docs/ that restate what the code says agree with it."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import widemargin
from measuring import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_drawing_of_the_layers_is_that_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["id"] == "layers")
    picture = read("architecture.md").split("```")[1]
    drawn = [line.partition("   ")[0].split() for line in picture.splitlines() if line.strip(" │")]
    assert [sorted(packages) for packages in drawn] == [sorted(layer.split(" | ")) for layer in layers]


def test_files_of_the_data_flow_exist() -> None:
    """A name without a folder is in the folder of the one before it."""
    flow = re.search(r"## Data flow(.*?)## Five rules", read("architecture.md"), re.DOTALL)
    assert flow is not None
    folder, missing = Path(), []
    for name in re.findall(r"[\w/]+\.(?:py|hpp)\b", flow.group(1)):
        folder = Path(name).parent if "/" in name else folder
        if not any((ROOT / "src/widemargin" / path).is_file() for path in (name, folder / name)):
            missing.append(name)
    assert not missing


def defines(path: Path, name: str) -> bool:
    """Whether a file defines a function, a class, or the method of a class ("Class.method"; in C++ the bare name)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".hpp":
        return re.search(rf"^(?! *return).*[\w>] {name}\([^;{{]*{{", text, re.MULTILINE) is not None
    body: list[ast.stmt] = ast.parse(text).body
    for part in name.split("."):
        found = [x for x in body if isinstance(x, ast.ClassDef | ast.FunctionDef) and x.name == part]
        if not found:
            return False
        body = found[0].body
    return True


def test_functions_that_answer_a_question_exist() -> None:
    section = re.search(r"## Where is what(.*?)## Data flow", read("architecture.md"), re.DOTALL)
    assert section is not None
    answers = re.findall(r"`([\w/]+\.(?:py|hpp)):([\w.]+)`", section.group(1))
    paths = [(ROOT / "src/widemargin" / path, name) for path, name in answers]
    assert len(answers) > 30
    assert not [(path, name) for path, name in paths if not path.is_file() or not defines(path, name)]


def test_links_lead_to_files() -> None:
    missing = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES):
        text = pages.with_tables(page.read_text(encoding="utf-8"))
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        missing += [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]
    assert not missing


def name_of(page: Path) -> str:
    return page.resolve().relative_to(DOCS).with_suffix("").as_posix()


def test_every_page_is_in_a_table_of_contents() -> None:
    found = {"index"}
    for page in PAGES:
        for tree in re.findall(r"```{toctree}(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for name in re.findall(r"^(?:.*<)?([\w/.][\w/.*]*)>?$", tree, re.MULTILINE):
                found |= {name_of(path) for path in page.parent.glob(f"{name}.md")}
    assert {name_of(page) for page in PAGES} <= found


def test_the_reference_has_all_public_names() -> None:
    listed = set(re.findall(r"^   (\w+)$", read("api.md"), re.MULTILINE))
    assert set(widemargin.__all__) - {"__version__", "datasets"} == listed


CLASSES = [name for name in widemargin.__all__ if inspect.isclass(getattr(widemargin, name))]


def documented(name: str, section: str) -> list[str]:
    """The parameters in a section of a class's docstring."""
    text = inspect.getdoc(getattr(widemargin, name)) or ""
    found = re.search(rf"(?<![\w ]){section}\n-+\n(.*?)(?=\n\n\w+( \w+)?\n-+\n)", text, re.DOTALL)
    lines = re.findall(r"^(\w+(?:,\s+\w+)*)", found.group(1), re.MULTILINE) if found else []
    return [parameter for line in lines for parameter in re.split(r",\s+", line)]


@pytest.mark.parametrize("name", CLASSES)
def test_the_parameters_that_matter_come_first(name: str) -> None:
    first, others = documented(name, "Parameters"), documented(name, "Other Parameters")
    assert len(first) <= 8
    assert [*first, *others] == list(inspect.signature(getattr(widemargin, name)).parameters)


def test_the_reference_has_links_and_no_paths() -> None:
    names = set(widemargin.__all__) - {"__version__", "datasets"}
    assert not [name for name in names if re.search(r"docs/\w+/", inspect.getdoc(getattr(widemargin, name)) or "")]
