"""Rows hold as long as the code that they were measured with."""

import subprocess

import pytest

from measuring import imports, provenance

MODULE = '"""Words."""\n\n\ndef f(x):\n    """Words."""\n    return x + 1  # a word\n'
EXPERIMENT = "def measure():\n    from widemargin import f\n"
CHANGED = MODULE.replace("x + 1", "x + 2")


@pytest.mark.parametrize(
    ("path", "changed", "holds"),
    [
        ("src/widemargin/rooms/module.py", MODULE.replace("Words", "Other words").replace("a word", "another"), True),
        ("src/widemargin/rooms/module.py", CHANGED, False),
        ("src/widemargin/other.py", CHANGED, True),  # which the experiment does not import
        ("src/widemargin/loops.hpp", "// other words", False),
        ("evidence/experiment.py", EXPERIMENT + "    f(1)\n", True),
    ],
)
def test_rows_hold_until_code_that_the_experiment_imports_changes(monkeypatch, tmp_path, path, changed, holds):
    for module in (imports, provenance):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    files = {
        "evidence/experiment.py": EXPERIMENT,
        "src/widemargin/__init__.py": "from .rooms import f\nfrom .other import g\n",
        "src/widemargin/rooms/__init__.py": "from .module import f\n",
        "src/widemargin/rooms/module.py": MODULE,
        "src/widemargin/other.py": MODULE,
        "src/widemargin/loops.hpp": "// words",
    }
    for changes in (files, {path: changed}):
        for name, text in changes.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        for command in ("init -q", "add -A", "-c user.name=n -c user.email=e@example.org commit -qm change"):
            subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    before = provenance.git("rev-parse", "HEAD~1")
    provenance._changed_code.cache_clear()  # commits of the same second have the same name in other folders
    assert provenance._holds.__wrapped__(before, "evidence/experiment.py") == holds
