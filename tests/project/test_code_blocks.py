"""The code of README and docs runs, and prints what its comments say; examples of the gallery run, and draw.

A block that needs what a test does not have (a cluster) or takes minutes stands below a line ``<!-- not run: why -->``.
"""

import ast
import contextlib
import io
import re
import runpy
import shlex
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from widemargin.cli.arguments import make_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"(<!-- not run[^\n]*-->\n+)?^( *)```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^(?:.*(?:&&|\|) )?widemargin ([^#|\n]*)", re.MULTILINE)


def blocks(page: Path) -> list[str]:
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(match.group(3)) for match in found if not match.group(1)]


def run(block: str, names: dict[str, Any]) -> list[tuple[str, str]]:
    """Execute a block; return pairs of what a line printed and what its comment, up to a semicolon, says."""
    lines, pairs = block.splitlines(), []
    for statement in ast.parse(block).body:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), "<block>", "exec"), names)
        comment = lines[(statement.end_lineno or 0) - 1][statement.end_col_offset :].strip()
        if comment.startswith("#") and printed.getvalue():
            pairs.append((printed.getvalue().strip(), comment.lstrip("# ").split(";")[0]))
    return pairs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page leaves open (X, y, X_new, a fitted SVC, chunks of a stream) is two moons."""
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    X, y = make_moons(400, noise=0.2, random_state=0)
    X = X.astype(np.float32)
    names: dict[str, Any] = {"X": X, "y": y, "X_train": X, "y_train": y, "X_new": X[:5], "rows": X[:5]}
    names |= {"svc": SVC(gamma=1.0).fit(X, y), "chunks": [(X[:200], y[:200]), (X[200:], y[200:])]}
    for block in blocks(page):
        for printed, said in run(block, names):
            assert printed == said


def test_command_lines_are_accepted() -> None:
    """Commands in blocks without a language, as the program reads them."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    fenced = re.findall(r"^ *```(.*?)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    commands = [line for language, block in fenced if not language for line in _COMMAND.findall(block)]
    assert len(commands) > 15
    for command in commands:
        arguments = shlex.split(command)
        if "--version" not in arguments:
            assert make_parser().parse_args(arguments).run


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("plot_*.py")), ids=lambda path: path.stem)
def test_example_draws(example: Path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    runpy.run_path(str(example))
    assert any(ax.has_data() for number in plt.get_fignums() for ax in plt.figure(number).axes)
    plt.close("all")
