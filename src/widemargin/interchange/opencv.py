"""OpenCV's models, ``cv2.ml.SVM.save``, as XML or YAML."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

import numpy as np

from .._types import Vector
from ..datasets.files import quoted
from .lines import Lines
from .machines import ImportedOutlierDetector, ImportedRegressor, class_blocks, make_votes, name_labels

_TYPES = ("C_SVC", "NU_SVC", "ONE_CLASS", "EPS_SVR", "NU_SVR")
_KERNELS = {"LINEAR": "linear", "POLY": "poly", "RBF": "rbf", "SIGMOID": "sigmoid"}
_DEEPEST = 16
_YAML_LINE = re.compile(r"((?:-(?: |$))?)\s*(?:([A-Za-z_]\w*)\s*:)?\s*(.*)")


@dataclass
class _Node:
    """An element: its line, its text, and its children by name; those of a list have the name "_"."""

    line: int
    parts: list[str] = field(default_factory=list)
    children: list[tuple[str, _Node]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.parts).strip()


def read_opencv_xml(lines: Lines, classes: Any) -> Any:
    """Read a model of OpenCV from XML."""
    return _Reader(lines).read(_parse_xml(lines), classes)


def read_opencv_yaml(lines: Lines, classes: Any) -> Any:
    """Read a model of OpenCV from YAML."""
    return _Reader(lines).read(_parse_yaml(lines), classes)


def _parse_xml(lines: Lines) -> _Node:
    """The elements of a document without a type declaration: so there are no entities."""
    parser, root = expat.ParserCreate(), _Node(1)
    open_nodes = [root]

    def start(name: str, _: Any) -> None:
        node = _Node(parser.CurrentLineNumber)
        if len(open_nodes) > _DEEPEST:
            raise lines.error("elements are nested too deeply", node.line)
        open_nodes[-1].children.append((name, node))
        open_nodes.append(node)

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
    return dict(root.children).get("opencv_storage", root)


def _parse_yaml(lines: Lines) -> _Node:
    """The part of YAML that OpenCV writes: nested by indentation, with lists of numbers in brackets."""
    root = _Node(1)
    stack: list[tuple[int, _Node]] = [(-1, root)]  # by indentation
    open_list: _Node | None = None  # whose bracket is not closed yet
    for raw in lines.raw():
        line = raw.strip()
        if open_list is None and (line.startswith(("%", "#")) or line in ("---", "...")):
            continue
        if open_list is not None:
            value, node = line, open_list
        else:
            indent = len(raw) - len(raw.lstrip())
            match = _YAML_LINE.fullmatch(line)
            dash, name, value = match.groups() if match else ("", None, line)
            if not (dash or name):
                raise lines.error(f"neither 'name: value' nor '- value': {quoted(line)}")
            while stack[-1][0] >= indent:
                stack.pop()
            if len(stack) > _DEEPEST:
                raise lines.error("lines are nested too deeply")
            for child in (["_"] if dash else []) + ([name] if name else []):
                node = _Node(lines.number)
                stack[-1][1].children.append((child, node))
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


class _Reader:
    """Values of nodes, each checked where it is read."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def read(self, root: _Node, classes: Any) -> Any:
        """The machine in a document."""
        self._check(root)
        model = self._child(root, "opencv_ml_svm", root)
        kind = self._word(model, "svmType", dict.fromkeys(_TYPES))
        kernel = self._kernel(self._child(model, "kernel"))
        d, n = self._count(model, "var_count"), self._count(model, "sv_total")
        vectors = [node for _, node in self._child(model, "support_vectors").children]
        if len(vectors) != n:
            raise self._error(model, f"sv_total is {n}, but there are {len(vectors)} support_vectors")
        entries = array("d")  # grows with what is there
        for node in vectors:
            entries.frombytes(self._numbers(node, "a support vector", d).tobytes())
        points = np.frombuffer(entries).reshape(n, d)
        functions = self._child(model, "decision_functions").children
        if not kind.endswith("SVC"):
            if len(functions) != 1:
                raise self._error(model, f"there must be one of decision_functions, got {len(functions)}")
            rho, coef = self._function(functions[0][1], n)
            if kind == "ONE_CLASS":
                return ImportedOutlierDetector(**kernel).take(points, coef[None], [-rho], density_marks_=None)
            return ImportedRegressor(**kernel).take(points, coef[None], [-rho], laplace_scale_=None)
        k = self._count(model, "class_count", 2)
        labels = self._labels(self._child(self._child(model, "class_labels"), "data"), k)
        if len(functions) != (n_pairs := k * (k - 1) // 2):
            raise self._error(model, f"{k} classes need {n_pairs} decision_functions, got {len(functions)}")
        pairs = [self._function(node, n) for _, node in functions]
        places, blocks, counts = class_blocks(np.array([coef for _, coef in pairs]), k)
        rhos = np.array([rho for rho, _ in pairs])
        return make_votes(kernel, name_labels(labels, classes), points[places], blocks, counts, rhos)

    def _check(self, node: _Node) -> None:
        """Raise a ValueError for text that is no value: it stands beside elements."""
        if node.children and node.text:
            raise self._error(node, f"{quoted(node.text)} stands beside named values or a list")
        for _, child in node.children:
            self._check(child)

    def _function(self, node: _Node, n: int) -> tuple[float, Vector]:
        """rho and the coefficients (n,) of one decision function."""
        size = self._count(node, "sv_count", 0)
        rho = self._number(node, "rho")
        alpha = self._numbers(self._child(node, "alpha"), "alpha", size)
        if size == n and all(name != "index" for name, _ in node.children):  # the only function has all vectors
            return rho, alpha
        places = self._numbers(self._child(node, "index"), "index", size)
        if (places != np.rint(places)).any() or (places < 0).any() or (places >= n).any():
            raise self._error(self._child(node, "index"), f"index must be whole numbers below {n}")
        coef = np.zeros(n)
        np.add.at(coef, places.astype(np.intp), alpha)
        return rho, coef

    def _kernel(self, node: _Node) -> dict[str, Any]:
        kernel = self._word(node, "type", _KERNELS)
        gamma = 1.0 if kernel == "linear" else self._number(node, "gamma")
        degree = self._number(node, "degree") if kernel == "poly" else 3.0
        if gamma <= 0 or degree != int(degree) or degree < 0:
            raise self._error(node, f"gamma must be above 0 and degree whole, got {gamma:g} and {degree:g}")
        coef0 = self._number(node, "coef0") if kernel in ("poly", "sigmoid") else 0.0
        return {"kernel": kernel, "gamma": gamma, "degree": int(degree), "coef0": coef0}

    def _labels(self, node: _Node, k: int) -> Any:
        labels = self._numbers(node, "class_labels", k)
        if (labels != np.rint(labels)).any() or len(np.unique(labels)) < k:
            raise self._error(node, f"class_labels must be different whole numbers, got {labels[:10].tolist()}")
        return labels.astype(np.int64)

    def _child(self, node: _Node, name: str, default: _Node | None = None) -> _Node:
        found = [child for own, child in node.children if own == name]
        if len(found) > 1:
            raise self._error(found[1], f"{name} is there twice")
        if not found and default is None:
            raise self._error(node, f"{name} is missing")
        return found[0] if found else default  # type: ignore[return-value]

    def _word(self, node: _Node, name: str, choices: dict[str, Any]) -> str:
        child = self._child(node, name)
        word = child.text.strip('"')
        if word not in choices:
            raise self._error(child, f"{name} must be one of {', '.join(choices)}, got {quoted(word)}")
        return choices[word] or word

    def _number(self, node: _Node, name: str) -> float:
        return float(self._numbers(self._child(node, name), name, 1)[0])

    def _count(self, node: _Node, name: str, least: int = 1) -> int:
        value = self._number(node, name)
        if value != int(value) or value < least:
            raise self._error(self._child(node, name), f"{name} must be whole and at least {least}, got {value:g}")
        return int(value)

    def _numbers(self, node: _Node, what: str, size: int) -> Vector:
        return self._lines.numbers(node.text.encode(), what, size, node.line)

    def _error(self, node: _Node, reason: str) -> ValueError:
        return self._lines.error(reason, node.line)
