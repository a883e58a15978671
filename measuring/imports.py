"""The code of this repository that a file imports, read from the sources: nothing is run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def imported_files(file: str) -> set[str]:
    """Return the files, from the root, that a file imports, also within functions, and that these import; and itself.

    A name that a package passes on counts as an import of the module that defines it.
    """
    found: set[str] = set()
    left = [".".join(Path(file).with_suffix("").parts)]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += [_origin(source, name) for source, name, _ in _imports(module)]
    return {str(path.relative_to(ROOT)) for module in found if (path := _file(module))}


def _file(module: str) -> Path | None:
    """The file of a module of this repository; None of others."""
    places = [root.joinpath(*module.split(".")) for root in (ROOT, ROOT / "src")]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return next(filter(Path.exists, files), None)


def _origin(source: str, name: str) -> str:
    """The module that defines a name of a module or package, or is it."""
    if not name or _file(f"{source}.{name}"):
        return f"{source}.{name}".removesuffix(".")
    further = (_origin(*pair) for *pair, passed_on in _imports(source) if passed_on == name)
    return next(further, source)


def _imports(module: str) -> list[tuple[str, str, str]]:
    """The imports in a module, as `_read_imports` returns them; none of a module of another repository."""
    file = _file(module)
    if file is None:
        return []
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return _read_imports(file.read_text(), package)


@cache
def _read_imports(text: str, package: str) -> list[tuple[str, str, str]]:
    """The module of each import, the name there ("" of a whole module), and the name here."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found += [(source, alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "", "") for alias in node.names]
    return found
