"""The rules of the house that no linter knows. The direction of imports is import-linter's, in pyproject.toml."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
HEAVY = ["torch", "dask", "matplotlib", "rich", "skops", "pandas", "PIL", "onnx", "sklearn"]
MAX_LINES = 600


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """The top-level names of the packages that a file imports, wherever in the file."""
    nodes = list(ast.walk(tree(path)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in names}


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions and classes a reader may call: no leading underscore, on the module's or a class's level."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{node.name}.")


def is_overload_or_setter(node: ast.AST) -> bool:
    """A second part of something whose first part has the docstring."""
    marks = {ast.unparse(mark).split(".")[-1] for mark in getattr(node, "decorator_list", [])}
    return bool(marks & {"overload", "setter"})


@pytest.mark.parametrize("name", FILES)
def test_files_are_short(name: str) -> None:
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", FILES)
def test_public_things_have_docstrings(name: str) -> None:
    module = tree(FILES[name])
    bare = [label for label, node in public_definitions(module.body) if not ast.get_docstring(node)]
    parts = [label for label, node in public_definitions(module.body) if is_overload_or_setter(node)]
    assert ast.get_docstring(module), "the module itself"
    assert not set(bare) - set(parts)


def test_private_modules_of_a_package_are_its_own() -> None:
    """But for those of `estimators`, which packages that make and read estimators use, too (docs/architecture.md)."""
    private = re.compile(r"^\s*from (?:\.\.|widemargin\.)(\w+)\._\w+ import", re.MULTILINE)
    used = {
        (name.split("/")[0], package)
        for name, path in FILES.items()
        for package in private.findall(path.read_text(encoding="utf-8"))
        if name.split("/")[0] != package
    }
    makers = ("compression", "model_selection", "export", "cli")
    assert used <= {(package, "estimators") for package in makers}, used


def test_types_of_arrays_are_defined_once() -> None:
    alias = re.compile(r"^(Vector|Matrix|Array|RowIndices|Labels|Mask)\b.* = ", re.MULTILINE)
    assert [name for name, path in FILES.items() if alias.search(path.read_text(encoding="utf-8"))] == ["_types.py"]


def test_nothing_is_compiled_at_run_time() -> None:
    assert not {name for name, path in FILES.items() if imported(path) & {"numba", "llvmlite", "cffi", "ctypes"}}


def test_public_names_are_those_of_all() -> None:
    assert dir(widemargin) == sorted(widemargin.__all__)
    for name in widemargin.__all__:
        assert getattr(widemargin, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        widemargin.no_such_name  # noqa: B018


def test_import_is_cheap() -> None:
    code = f"import sys, widemargin; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"


def test_a_fit_loads_nothing_it_does_not_need() -> None:
    code = (
        "import sys, widemargin; widemargin.DCSVMClassifier().fit([[0.0], [1.0]], [0, 1]);"
        "print([name for name in ('torch', 'dask', 'matplotlib', 'rich', 'skops') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "[]\n"
