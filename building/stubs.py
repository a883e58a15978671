"""Write the type stubs of the compiled modules, which git ignores and mypy needs: python building/stubs.py.

nanobind's generator writes one overload for each dtype, with shapes and layouts in the types. Here overloads that
differ in dtypes only are merged into one function of ``NDArray[np.floating]`` (or ``np.integer``), and shapes and
layouts are removed, so that strict types allow the calls.
"""

import ast
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from widemargin import _native
from widemargin._native._levels import LEVEL, load

PACKAGE = "widemargin._native"
FOLDER = Path(__file__).parents[1].joinpath("src", *PACKAGE.split("."))
BARE = {"Callable": "Callable[..., Any]", "tuple": "tuple[Any, ...]", "list": "list[Any]", "dict": "dict[Any, Any]"}
KINDS = {"NDArray[np.float": "NDArray[np.floating]", "NDArray[np.int": "NDArray[np.integer]"}
IMPORTS = {"Callable": "from collections.abc import Callable", "Any": "from typing import Any"} | {
    "overload": "from typing import overload",
    "np": "import numpy as np",
    "NDArray": "from numpy.typing import NDArray",
}
Function = ast.FunctionDef


def expression(text: str) -> ast.expr:
    """Parse one expression."""
    return ast.parse(text, mode="eval").body


class Simplified(ast.NodeTransformer):
    """Types as the rest of the code writes them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Write ``numpy`` as np, and generic types with parameters."""
        return ast.Name("np") if node.id == "numpy" else expression(BARE.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Write the package's own types without its name."""
        name = ast.unparse(node)
        if name.startswith(f"{PACKAGE}."):
            return expression(name.removeprefix(f"{PACKAGE}."))
        node.value = self.visit(node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Remove shape and layout from array types: docstrings state them."""
        if ast.unparse(node.value) == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return self.visit(node.slice.elts[0])
        node.slice = self.visit(node.slice)
        return node

    def visit_FunctionDef(self, node: Function) -> Function:
        """Write the return type ``object`` as ``Any``."""
        self.generic_visit(node)
        if node.returns and ast.unparse(node.returns) == "object":
            node.returns = ast.Name("Any")
        return node


def arguments(function: Function) -> list[ast.arg]:
    """All arguments, in order."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def outline(function: Function) -> tuple[str, list[str], list[str]]:
    """Name, argument names and defaults: equal in overloads that differ in types only."""
    return function.name, [a.arg for a in arguments(function)], list(map(ast.unparse, function.args.defaults))


def merged_types(types: list[ast.expr | None]) -> ast.expr | None:
    """The union of types; two dtypes of a kind become the kind."""
    names = list(dict.fromkeys(name for t in types if t for name in ast.unparse(t).split(" | ")))
    for start, kind in KINDS.items():
        if sum(name.startswith(start) for name in names) > 1:
            names = list(dict.fromkeys(kind if name.startswith(start) else name for name in names))
    return expression(" | ".join(names)) if names else None


def merged(functions: list[Function]) -> list[Function]:
    """One function for overloads that differ in types only, with the docstring of the last one; else the overloads."""
    first, last = functions[0], functions[-1]
    if any(outline(f) != outline(first) for f in functions):
        return functions
    for same in zip(*map(arguments, functions), strict=True):
        same[-1].annotation = merged_types([a.annotation for a in same])
    last.returns = merged_types([f.returns for f in functions])
    last.decorator_list = [mark for mark in last.decorator_list if ast.unparse(mark) != "overload"]
    return [last]


def merge_overloads(body: list[ast.stmt]) -> list[ast.stmt]:
    """The definitions of a module or class with their overloads merged."""
    overloads: dict[str, list[Function]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            node.body = merge_overloads(node.body)
        elif isinstance(node, Function) and "overload" in map(ast.unparse, node.decorator_list):
            overloads.setdefault(node.name, []).append(node)
    result: list[ast.stmt] = []
    for node in body:
        same = overloads.get(node.name, []) if isinstance(node, Function) else []
        if node not in same:
            result.append(node)
        elif node is same[-1]:
            result.extend(merged(same))
    return result


def imports(tree: ast.Module, name: str) -> str:
    """The import statements that a module's types need; the package's own re-export its submodules."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = [line for n, line in IMPORTS.items() if n in used]
    if name == "__init__":
        lines += [f"from . import {n} as {n}" for n in _native.__all__ if isinstance(getattr(_native, n), ModuleType)]
    else:
        lines += [f"from . import {n}" for n in _native.__all__ if n in used - {name}]
    return "\n".join(lines)


def shortened(text: str, name: str) -> str:
    """The simplified text of a stub of nanobind's."""
    tree = Simplified().visit(ast.parse(text.replace(load(LEVEL).__name__, PACKAGE)))
    docstring = [n for n in tree.body[:1] if isinstance(n, ast.Expr)]
    rest = [n for n in tree.body[len(docstring) :] if not isinstance(n, ast.Import | ast.ImportFrom)]
    tree.body = docstring + ast.parse(imports(tree, name)).body + merge_overloads(rest)
    if name == "__init__":
        tree.body += ast.parse(f"LEVEL: str\n__all__ = {_native.__all__}").body
    return ast.unparse(tree)


def main() -> None:
    """Write the stubs beside the package's modules, in place of those that are there."""
    generator = [sys.executable, "-m", "nanobind.stubgen", "--quiet", "--recursive"]
    with TemporaryDirectory() as folder:
        subprocess.run([*generator, "-m", load(LEVEL).__name__, "-O", folder], check=True)
        for old in FOLDER.glob("*.pyi"):
            if old.stem != "_processor":  # written by hand
                old.unlink()
        for file in Path(folder).rglob("*.pyi"):
            text = shortened(file.read_text(encoding="utf-8"), file.stem)
            FOLDER.joinpath(file.name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
