"""The comments of compiled code: each header says what it is, and each solver has a card whose twins exist."""

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


def test_headers_begin_with_what_they_are() -> None:
    assert not [header.name for header in HEADERS if not re.match(r"// [A-Z`]", header.read_text(encoding="utf-8"))]


def test_cards_of_solvers_are_complete() -> None:
    blocks = [
        (header.name, block)
        for header in HEADERS
        for block in re.findall(r"(?:^ *//.*\n)+", header.read_text(encoding="utf-8"), re.M)
        if re.search(r"// Solve   ", block)
    ]
    assert len(blocks) > 8
    for name, block in blocks:
        for line in ("Given", "Returns", "Cost", "Twin"):
            assert re.search(rf"// {line} ", block), f"{name}: a card without {line}:\n{block}"
