"""Programs that PyInstaller has packed."""

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

import widemargin
from widemargin._native import _levels
from widemargin._pyinstaller import get_hook_dirs, hidden_imports

PROGRAM = """
import numpy as np
import widemargin

X = np.random.default_rng(0).normal(size=(100, 2))
print(widemargin.OCASClassifier().fit(X, X[:, 0] > 0).converged_)
"""


def test_every_module_that_is_imported_by_a_computed_name_is_listed() -> None:
    names = hidden_imports()
    modules = [importlib.import_module(name) for name in names if "_native" not in name]
    assert {f"widemargin._native.{_levels._MODULES[level]}" for level in _levels.built_levels()} <= set(names)
    public = set(widemargin.__all__) - {"__version__", "datasets"}
    assert not public - {name for module in modules for name in vars(module)}


def test_pyinstaller_finds_the_hook() -> None:
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    entries = settings["project"]["entry-points"]["pyinstaller40"]
    assert resolve_name(entries["hook-dirs"]) is get_hook_dirs
    assert (Path(get_hook_dirs()[0]) / "hook-widemargin.py").is_file()


@pytest.mark.slow
def test_a_packed_program_starts(tmp_path: Path) -> None:
    pytest.importorskip("PyInstaller")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--exclude-module=matplotlib", "program.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    program = tmp_path / "dist" / "program" / ("program.exe" if os.name == "nt" else "program")
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout == "True\n"
