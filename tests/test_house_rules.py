"""The rules of the house that no linter knows. The direction of imports is import-linter's, in pyproject.toml."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
HEAVY = ["torch", "dask", "matplotlib", "rich", "skops", "pandas", "PIL", "onnx", "sklearn"]
MAX_LINES = 700


def test_files_are_short() -> None:
    lengths = {name: path.read_text(encoding="utf-8").count("\n") for name, path in FILES.items()}
    assert not {name: n for name, n in lengths.items() if n > MAX_LINES}


def test_private_modules_of_a_package_are_its_own() -> None:
    """But for those of `estimators`, which packages that make and read estimators use, too (docs/architecture.md)."""
    private = re.compile(r"^\s*from (?:\.\.|widemargin\.)(\w+)\._\w+ import", re.MULTILINE)
    used = {
        (name.split("/")[0], package)
        for name, path in FILES.items()
        for package in private.findall(path.read_text(encoding="utf-8"))
        if name.split("/")[0] != package
    }
    makers = ("compression", "model_selection", "export", "explanations", "cli", "interchange")
    assert used <= {(package, "estimators") for package in makers}, used


def test_types_of_arrays_are_defined_once() -> None:
    alias = re.compile(r"^(Vector|Matrix|Array|RowIndices|Labels|Mask)\b.* = ", re.MULTILINE)
    assert [name for name, path in FILES.items() if alias.search(path.read_text(encoding="utf-8"))] == ["_types.py"]


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


@pytest.mark.slow
def test_a_fit_loads_nothing_it_does_not_need() -> None:
    code = (
        "import sys, widemargin; widemargin.DCSVMClassifier().fit([[0.0], [1.0]], [0, 1]);"
        "print([name for name in ('torch', 'dask', 'matplotlib', 'rich', 'skops') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "[]\n"
