"""The problem cards above compiled solvers: the twins that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADERS = sorted(ROOT.glob("src/widemargin/_native/cpp/*.hpp"))


def test_twins_exist() -> None:
    twins = [
        (header.name, file, name)
        for header in HEADERS
        for file, names in re.findall(r"(tests/naive/\w+\.py)::([\w., ]+)", header.read_text(encoding="utf-8"))
        for name in re.findall(r"\w[\w.]*", names.split(" with ")[0])
    ]
    assert len(twins) > 20
    for header, file, name in twins:
        text = (ROOT / file).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^ *(def|class) {part}\b", text, re.M), f"{header}: there is no {name} in {file}"
