"""Rows hold as long as the code that they were measured with."""

import subprocess

import pytest

from measuring import provenance

MODULE = '"""Words."""\n\n\ndef f(x):\n    """Words."""\n    return x + 1  # a word\n'


@pytest.mark.parametrize(
    ("path", "changed", "holds"),
    [
        ("module.py", MODULE.replace("Words", "Other words").replace("a word", "another"), True),
        ("module.py", MODULE.replace("x + 1", "x + 2"), False),
        ("module.py", None, False),
        ("cli/module.py", MODULE.replace("x + 1", "x + 2"), True),
    ],
)
def test_rows_hold_until_code_that_fits_run_changes(monkeypatch, tmp_path, path, changed, holds):
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    file = tmp_path / "src" / "widemargin" / path
    file.parent.mkdir(parents=True)
    for text in (MODULE, changed):
        file.unlink() if text is None else file.write_text(text)
        for command in ("init -q", "add -A", "-c user.name=n -c user.email=e@example.org commit -qm change"):
            subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    assert provenance._holds.__wrapped__(provenance.git("rev-parse", "HEAD~1")) == holds
