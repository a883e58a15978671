"""OpenCV's models, ``cv2.ml.SVM.save``, as XML or YAML."""

from __future__ import annotations

import re
from array import array
from typing import Any
from xml.parsers import expat

import numpy as np

from .._types import Given, Model, Vector
from ..datasets.files import quoted
from .lines import Fields, Lines
from .machines import ImportedOutlierDetector, ImportedRegressor, class_blocks, make_votes, name_labels

_TYPES = ("C_SVC", "NU_SVC", "ONE_CLASS", "EPS_SVR", "NU_SVR")
_KERNELS = {"LINEAR": "linear", "POLY": "poly", "RBF": "rbf", "SIGMOID": "sigmoid"}
_DEEPEST = 16
_YAML_LINE = re.compile(r"((?:-(?: |$))?)\s*(?:([A-Za-z_]\w*)\s*:)?\s*(.*)")


class _Node(Fields):
    """An element: its line, its text, its children by name, and those without one, the items of a list."""

    def __init__(self, lines: Lines, line: int) -> None:
        super().__init__(lines)
        self.line, self.parts = line, list[str]()
        self.children, self.items = dict[str, _Node](), list[_Node]()

    @property
    def text(self) -> bytes:
        return " ".join(self.parts).strip().strip('"').encode()

    def add(self, name: str, line: int) -> _Node:
        """Add a child, or, of the name "_", an item."""
        node = _Node(self.lines, line)
        if name == "_":
            self.items.append(node)
        elif self.children.setdefault(name, node) is not node:
            raise self.lines.error(f"{name} is there twice", line)
        return node

    def child(self, name: str) -> _Node:
        """A child; a ValueError if it is missing."""
        if name not in self.children:
            raise self.lines.error(f"{name} is missing", self.line)
        return self.children[name]

    def find(self, key: str) -> tuple[int, bytes]:
        """The line and the text of a value; a ValueError if it is missing."""
        node = self.child(key)
        return node.line, node.text

    def check(self) -> None:
        """Raise a ValueError for text that is no value: it stands beside elements."""
        inside = [*self.children.values(), *self.items]
        if inside and self.text:
            raise self.lines.error(f"{quoted(self.text)} stands beside named values or a list", self.line)
        for node in inside:
            node.check()


def parse_xml(lines: Lines) -> _Node:
    """The elements of a document without a type declaration: so there are no entities."""
    parser, root = expat.ParserCreate(), _Node(lines, 1)
    open_nodes = [root]

    def start(name: str, _: Any) -> None:
        if len(open_nodes) > _DEEPEST:
            raise lines.error("elements are nested too deeply", parser.CurrentLineNumber)
        open_nodes.append(open_nodes[-1].add(name, parser.CurrentLineNumber))

    def refuse(*_: Any) -> None:
        raise lines.error("a document type declaration is refused", parser.CurrentLineNumber)

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: open_nodes.pop()
    parser.CharacterDataHandler = lambda text: open_nodes[-1].parts.append(text)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.ParseFile(lines.file)
    except expat.ExpatError as error:
        raise lines.error(f"no XML: {expat.ErrorString(error.code)}", error.lineno) from error
    return root.children.get("opencv_storage", root)


def parse_yaml(lines: Lines) -> _Node:
    """The part of YAML that OpenCV writes: nested by indentation, with lists of numbers in brackets."""
    root = _Node(lines, 1)
    stack: list[tuple[int, _Node]] = [(-1, root)]  # by indentation
    open_list: _Node | None = None  # whose bracket is not closed yet
    for raw in lines:
        indented = raw.decode("utf-8", "replace").rstrip()
        line = indented.lstrip()
        if open_list is None and (line.startswith(("%", "#")) or line in ("---", "...")):
            continue
        if open_list is not None:
            value, node = line, open_list
        else:
            indent = len(indented) - len(line)
            match = _YAML_LINE.fullmatch(line)
            dash, name, value = match.groups() if match else ("", None, line)
            if not (dash or name):
                raise lines.error(f"neither 'name: value' nor '- value': {quoted(line)}")
            while stack[-1][0] >= indent:
                stack.pop()
            if len(stack) > _DEEPEST:
                raise lines.error("lines are nested too deeply")
            for child in (["_"] if dash else []) + ([name] if name else []):
                node = stack[-1][1].add(child, lines.number)
                stack.append((indent, node))
                indent += 3  # a name after a dash is as deep as those below it
            value = re.sub(r"^!!\S+\s*", "", value)
        if value.startswith("{"):
            continue  # the solver's limits
        is_list = open_list is not None or value.startswith("[")
        open_list = node if is_list and not value.endswith("]") else None
        node.parts.append(value.strip("[]").replace(",", " ") if is_list else value)
    if open_list is not None:
        raise lines.error("a bracket is not closed", open_list.line)
    return root


def read_opencv(root: _Node, classes: Given) -> Model:
    """Read a model of OpenCV from the elements of its document."""
    root.check()
    model, lines = root.children.get("opencv_ml_svm", root), root.lines
    kind = model.choice("svmType", _TYPES)
    kernel = model.child("kernel").kernel("type", _KERNELS)
    d, n = model.integer("var_count", 1), model.integer("sv_total", 1)
    vectors = model.child("support_vectors").items
    if len(vectors) != n:
        raise model.error("sv_total", f"is {n}, but there are {len(vectors)} support_vectors")
    entries = array("d")  # grows with what is there
    for node in vectors:
        entries.frombytes(lines.numbers(node.text, "a support vector", d, node.line).tobytes())
    points = np.frombuffer(entries).reshape(n, d)
    k = model.count_classes("class_count") if kind.endswith("SVC") else 2
    functions, n_pairs = model.child("decision_functions").items, k * (k - 1) // 2
    if len(functions) != n_pairs:
        raise model.error("decision_functions", f"must be {n_pairs}, got {len(functions)}")
    pairs = [_read_function(node, n) for node in functions]
    rhos, coef = np.array([rho for rho, _ in pairs]), np.array([coef for _, coef in pairs])
    if not kind.endswith("SVC"):
        machine = ImportedOutlierDetector if kind == "ONE_CLASS" else ImportedRegressor
        return machine(**kernel).take(points, coef, -rhos)
    labels = model.child("class_labels").labels("data", k)
    places, blocks, counts = class_blocks(coef, k)
    return make_votes(kernel, name_labels(labels, classes), points[places], blocks, counts, rhos)


def _read_function(node: _Node, n: int) -> tuple[float, Vector]:
    """rho and the coefficients (n,) of one decision function."""
    size, rho = node.integer("sv_count", 0), node.number("rho")
    alpha = node.numbers("alpha", size)
    if size == n and "index" not in node.children:  # the only function has all vectors
        return rho, alpha
    places, coef = node.integers("index", size, 0), np.zeros(n)
    if (places >= n).any():
        raise node.error("index", f"must be whole numbers below {n}")
    np.add.at(coef, places, alpha)
    return rho, coef
