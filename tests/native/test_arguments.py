"""Hostile arguments to every bound function: a Python exception, or a result; never an access outside an array.

`CALLS` has arguments for each function of the compiled module, and a function without an entry fails. The checked build
ends the process at an access outside an array; in other builds wrong dtypes, layouts and sizes must raise.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from widemargin import _native
from widemargin._native import Team, budget, csr, dual, linear, nystroem, smooth

N, D, K = 12, 5, 3  # rows, columns, vectors or classes
ALONE = Team(1)
Call = tuple[Callable[..., Any], dict[str, Any]]


def vector(n: int = N) -> np.ndarray:
    return np.linspace(-1.0, 2.0, n)


def rows(n: int = N, d: int = D, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def some(n: int, most: int) -> np.ndarray:
    return np.arange(n) % most


def sparse(dtype: type = np.float64) -> csr.CSRMatrix:
    return csr.CSRMatrix(np.ones(N, dtype), some(N, D).astype(np.int32), np.arange(N + 1), D)


def terms(n: int = N) -> dual.SeparableTerms:
    return dual.SeparableTerms(vector(n), np.full(n, -1.0), np.ones(n), np.ones(n))


def subproblems(dtype: type) -> dict[str, Any]:
    vectors = {"beta": np.zeros(N), "f": np.zeros(N)}
    return {
        "K": np.eye(N, dtype=dtype),
        "rows": np.arange(N),
        "starts": np.array([0, 5, N]),
        "terms": terms(),
        **vectors,
    }


def kernel_rows(X: Any, squares: Any) -> dict[str, Any]:
    return {"X": X, "squares": squares, "Z": X, "other_squares": squares, "gamma": 0.5}


def boxes() -> dict[str, Any]:
    return {"starts": np.array([0, 5, N]), "lows": rows(D, 2) - 3.0, "highs": rows(D, 2) + 3.0, "limit": 4.0}


def multiclass() -> linear.MulticlassHinge:
    return linear.MulticlassHinge(some(N, K), np.ones(N), K)


def merge_grids() -> budget.MergeGrids:
    return budget.MergeGrids(np.full((2, 4, 4), 0.5, np.float32))


def tree() -> dict[str, np.ndarray]:
    return {"centres": rows(2, D)[None], "sizes": np.array([2], np.int32), "children": np.array([[-1, -2]], np.int32)}


def landmarks() -> dict[str, Any]:
    points = {"landmarks": np.stack([rows(4)] * 2), "pseudo_distances": np.ones((2, 4, 3)), "bounds": some(2, 2)}
    return {"kernel": nystroem.Kernel("rbf"), **points}


def machine() -> dict[str, Any]:
    parts = {"tree": nystroem.Tree(**tree()), "landmarks": nystroem.Landmarks(**landmarks())}
    arrays = {"coef": np.ones((2, 1, 7)), "products": np.ones((2, 1, 4, 4)), "slopes": np.ones((2, 1, D))}
    return parts | arrays | {"intercept": np.ones((2, 1))}


def fixed_steps() -> dict[str, Any]:
    block = {"K": rows(4, N, np.float32), "first": 8, "diagonal": np.ones(N), "signed_weights": vector(4)}
    state = {"coef": np.zeros((2, N)), "inverse": np.zeros((N, N))}
    totals = {"counts": np.zeros(7, np.int64), "sums": np.eye(7)[3]}
    return block | state | totals | {"budget": 8, "inverse_lam": 1.0, "fit_intercept": True}


def line() -> dict[str, Any]:
    return {"team": ALONE, "f": vector(), "f_end": vector()[::-1].copy(), "signed_weights": vector()}


def margins() -> dict[str, Any]:
    return {"team": ALONE, "f": rows(K, N), "f_end": rows(K, N)}


def merge_steps() -> dict[str, Any]:
    what = {"X": rows(dtype=np.float32), "order": some(20, N), "signed_weights": vector(), "grids": merge_grids()}
    return what | {"rule": "lookup-wd", "gamma": 1.0, "inverse_lam": 1.0, "fit_intercept": True}


def multiclass_ascent(X: Any) -> dict[str, Any]:
    samples = {"team": ALONE, "X": X, "y": some(N, K), "s": np.ones(N), "squared_norms": np.ones(N)}
    point = {"beta": np.zeros((N, K)), "W": np.zeros((D + 1, K))}
    return samples | {"C": 1.0, "constant": 1.0} | point | {"order": some(20, N)}


def ascent(X: Any) -> dict[str, Any]:
    point = {
        "signed_weights": vector(),
        "squared_norms": np.ones(N),
        "C": 1.0,
        "sigma": 1.0,
        "alpha": np.zeros(N),
        "w": np.zeros(D + 1),
    }
    return {"team": ALONE, "X": X, **point, "order": np.arange(N), "shrink_above": np.inf, "shrink_below": -np.inf}


def shapley_arguments(kernel: str) -> dict[str, Any]:
    games = {"X": rows(), "points": rows(K, D), "coef": rows(K, 2), "players": some(D, K), "n_players": K}
    rules = {"nodes": np.linspace(0.1, 0.9, 24), "weights": np.ones(24), "limits": np.array([1.0, 5.0])}
    return {
        "team": ALONE,
        "kernel": kernel,
        "gamma": 0.5,
        **games,
        "background": rows(2),
        **rules,
        "out": np.zeros((2, N, 8)),
    }


def products(is_transposed: bool) -> dict[str, Any]:
    return {"team": ALONE, "Xt": rows(D, N)} if is_transposed else {"team": ALONE, "X": rows()}


def smooth_passes() -> dict[str, dict[str, Any]]:
    samples = {"team": ALONE, "y": np.where(vector() > 0, 1.0, -1.0), "s": np.ones(N)}
    ends, factors = {"f": vector(), "f_end": vector()}, {"positive_factor": 1.0, "negative_factor": 0.5}
    second = {"curvatures": np.empty(N)}
    return {
        "line_derivatives": samples | ends | {"intercept": 0.0, "intercept_end": 0.1, "k": 0.5},
        "slope_sums": samples | ends | {"k": 0.5, "intercept": 0.1},
        "advance": samples | ends | factors | second | {"step": 0.5, "intercept": 0.1, "coef": np.empty(N)},
        "model_slopes": samples | ends | {"curvatures": np.ones(N), "coef": vector(), "shift": 0.1, "out": np.empty(N)},
        "plane_offset": samples | factors | {"coef": vector()},
    }


def of_both_precisions(dtype: type, bits: str) -> dict[str, Any]:
    """Good arguments of the classes of `dual` that end in "32" or "64", and of their methods."""
    make_rows, make_problems = (getattr(dual, name + bits) for name in ("EntryRows", "Subproblems"))
    entries = {"X": rows(dtype=dtype), "squares": np.ones(N), "gamma": 1.0}
    problems = make_problems(**subproblems(dtype), has_intercept=bits == "32")
    solve = {"team": ALONE, "tol": np.full(2, 1e-3), "max_sets": np.full(2, 9), "seconds": 1.0}
    return {
        f"dual.Tile{bits}": {"size": 4},
        f"dual.EntryRows{bits}": entries,
        f"dual.EntryRows{bits}.fill": (make_rows(*entries.values(), 1.0, np.empty(10**6, np.uint8)), {"team": ALONE}),
        f"dual.EntryRows{bits}.__len__": (make_rows(*entries.values()), {}),
        f"dual.Subproblems{bits}": subproblems(dtype) | {"has_intercept": bits == "64"},
        f"dual.Subproblems{bits}.solve": (problems, solve),
        f"dual.Subproblems{bits}.compute_decision_values": (problems, {}),
    }


def calls() -> dict[str, Any]:
    """Good arguments of every bound function, by name; beside the object of a method; a list of several calls."""
    intercept = {"intercept": 0.1, "signed_weights": vector()}
    indices = {"indices": some(N, D).astype(np.int32), "indptr": np.arange(N + 1)}
    f = {"team": ALONE, "f": vector()}
    weights = {"coef": rows(K, N), "base": rows(K, N), "out": np.empty((K, D))}
    leaves = {"rows": np.arange(N), "out": np.empty(N, np.int32)}
    state = {"beta": np.zeros(N), "f": np.zeros(N), "has_intercept": False}
    on_matrix = {"team": ALONE, "K": np.eye(N), "terms": terms(), **state, "tile": dual.Tile64(4)}
    search = {"candidates": np.ones(2), "coef": np.ones((2, 16)), "log_kappa": np.full((2, 16), -1.0, np.float32)}
    found = {"sizes": np.array([16, 3]), "grids": merge_grids(), "rule": "gss", "partners": some(2, 2)}
    values = nystroem.Landmarks(**landmarks())
    whole = nystroem.Machine(**machine())
    return {
        "keep_freed_memory": {"n_bytes": 2**26},
        "return_freed_memory": {},
        "Team": {"n_threads": 2, "is_spinning": False},
        "Team.stop": (Team(1), {}),
        "Team.stop_after": (Team(1), {"seconds": 1.0}),
        "Team.resume": (Team(1), {}),
        "Team.map": (Team(1), {"fn": max, "n": 3}),
        "Team.close": (Team(1), {}),
        "kernels.copy_transposed": {"A": rows(), "out": np.empty((D, N))},
        "kernels.kernel_matrix": [
            kernel_rows(X, squares) | {"out": np.empty((N, N))}
            for X in (rows(), sparse())
            for squares in (vector(), None)
        ],
        "kernels.add_kernel_product": [
            kernel_rows(X, squares) | {"coef": rows(2, N), "out": np.zeros((2, N))}
            for X in (rows(), sparse())
            for squares in (vector(), None)
        ],
        "kernels.add_near_product": [
            kernel_rows(X, squares) | boxes() | {"coef": rows(2, N), "out": np.zeros((2, N))}
            for X in (rows(), sparse())
            for squares in (vector(), None)
        ],
        "kernels.polynomial": {"G": rows(), "gamma": 1.0, "coef0": 1.0, "degree": 3},
        "shapley.add_shapley_values": [shapley_arguments(kernel) for kernel in ("rbf", "laplacian", "chi2")],
        "gradients.add_signed_sums": {"X": rows(), "Zt": rows(D, K), "weights": rows(N, K), "out": np.zeros((N, D))},
        "kernels.remove_rows": {"team": ALONE, "K": np.eye(N), "kept": np.array([0, 2, 3])},
        "kernels.add_product": {"K": rows(), "coef": rows(K, N), "out": np.zeros((K, D))},
        "kernels.add_sparse_product": {
            "K": rows(),
            "starts": np.arange(N + 1),
            "functions": some(N, K),
            "coef": vector(),
            "out": np.zeros((K, D)),
        },
        "dual.SeparableTerms": {"target": vector(), "lo": -np.ones(N), "hi": np.ones(N), "scale": np.ones(N)},
        "dual.SeparableTerms.__len__": (terms(), {}),
        "dual.WorkingSet": {"size": 4, "n_rows": N},
        "dual.kkt_violation": {"terms": terms(), **state, "out": np.empty(N)},
        "dual.solve_working_sets": {**on_matrix, "working_set": dual.WorkingSet(4, N), "tol": 1e-3, "max_sets": 9},
        "dual.solve_from_rows": [
            {key: value for key, value in on_matrix.items() if key not in ("K", "tile", "rows")}
            | {"rows": entry_rows, "tile": tile, "working_set": dual.WorkingSet(4, N), "tol": 1e-3, "max_sets": 9}
            for entry_rows, tile in (
                (dual.EntryRows32(rows(dtype=np.float32), np.ones(N), 1.0), dual.Tile32(4)),
                (dual.EntryRows64(rows(), np.ones(N), 1.0), dual.Tile64(4)),
            )
        ],
        **of_both_precisions(np.float32, "32"),
        **of_both_precisions(np.float64, "64"),
        "csr.CSRMatrix": {"data": np.ones(N), **indices, "n_columns": D},
        "csr.CSRMatrix.rows": (sparse(), {"first": 2, "end": 5}),
        "csr.CSRMatrix.__len__": (sparse(), {}),
        "csr.check_arrays": {**indices, "n_values": N, "n_rows": N, "n_columns": D},
        "csr.inner_products": {"X": sparse(), "Z": sparse(), "out": np.empty((N, N))},
        "csr.count_nonzeros": {"X": rows(), "indptr": np.empty(N + 1, np.int64)},
        "csr.copy_nonzeros": {"X": rows(), "data": np.empty(N * D), "indices": np.empty(N * D, np.int32)},
        "csr.matvec": {"team": ALONE, "X": sparse(), "W": rows(K), "out": np.empty((K, N))},
        "csr.rmatvec": {"team": ALONE, "X": sparse(), **weights},
        "dense.matvec": products(False) | {"W": rows(K), "out": np.empty((K, N))},
        "dense.matvec_transposed": products(True) | {"W": rows(K), "out": np.empty((K, N))},
        "dense.rmatvec": products(False) | weights,
        "dense.rmatvec_transposed": products(True) | weights,
        "dense.take_rows": products(False) | {"chosen": some(4, N), "out": np.empty((4, D))},
        "dense.take_columns": products(True) | {"chosen": some(4, N), "out": np.empty((4, D))},
        "dense.are_finite": {"team": ALONE, "numbers": vector()},
        "dense.inner_products": {"X": rows(4), "Z": rows(N), "out": np.empty((4, N))},
        "dense.second_moments": products(False)
        | {"chosen": some(4, N), "centre": vector(D), "factors": vector(4), "out": np.empty((D, D))},
        "hinge.scan_breakpoints": line() | {"intercept": 0.0, "intercept_end": 0.0, "lo": 0.0, "hi": 1.0},
        "hinge.find_root": {
            "breakpoints": 2 + vector(),
            "jumps": np.ones(N),
            "curvature": 1.0,
            "slope": -9.0,
            "lo": 0.0,
        },
        "hinge.advance": line() | {"step": 0.5, "mu": 0.1, "coef": np.empty(N)},
        "hinge.smoothed_hinges": f
        | intercept
        | {"width": 0.1, "positive_factor": 1.0, "negative_factor": 1.0, "coef": np.empty(N)},
        "hinge.smoothed_slopes": f | intercept | {"width": 0.1},
        "hinge.rows_near_kink": f | intercept | {"distance": 0.1},
        "hinge.weighted_quantile": {"values": vector(), "weights": np.ones(N), "level": 4.0},
        "hinge.collect_residuals": line() | {"k": 0.5, "lo": -1.0, "hi": 1.0, "residuals": np.empty(N)},
        "hinge.advance_with_intercept": line()
        | {"step": 0.5, "intercept": 0.1, "residuals": vector(), "plane_intercept": 0.5}
        | {"plane_balance": 0.0, "coef": np.empty(N)},
        **{
            f"smooth.{type(loss).__name__}.{name}": (loss, arguments)
            for loss in (smooth.SquaredHinge(), smooth.Logistic(), smooth.SquaredEpsilonInsensitive(0.1))
            for name, arguments in smooth_passes().items()
        },
        "smooth.SquaredHinge": {},
        "smooth.Logistic": {},
        "smooth.SquaredEpsilonInsensitive": {"epsilon": 0.1},
        "linear.solve_simplex_qp": {"H": np.eye(K), "b": vector(K), "beta": np.ones(K), "tol": 1e-6, "max_rounds": 9},
        "linear.MulticlassHinge": {"y": some(N, K), "s": np.ones(N), "n_classes": K},
        "linear.MulticlassHinge.advance": (
            multiclass(),
            margins() | {"step": 0.5, "mu": 0.1, "coef": np.empty((K, N))},
        ),
        "linear.MulticlassHinge.slope": (multiclass(), margins() | {"rows": some(4, N), "k": 0.5}),
        "linear.MulticlassHinge.drop_linear_rows": (
            multiclass(),
            margins() | {"rows": some(4, N), "lo": 0.0, "hi": 1.0},
        ),
        "linear.ascent_epoch": [ascent(X) for X in (rows(), sparse())],
        "linear.multiclass_epoch": [multiclass_ascent(X) for X in (rows(), sparse())],
        "linear.squared_norms": [{"X": X, "out": np.empty(N)} for X in (rows(), sparse())],
        "linear.count_values": [{"X": X} for X in (rows(), sparse())],
        "budget.MergeGrids": {"grids": np.full((2, 4, 4), 0.5, np.float32)},
        "budget.find_partners": search | found | {"found": np.empty((2, 2))},
        "budget.MergingState": {"n_features": D, "budget": 4},
        "budget.MergingState.run": [
            (budget.MergingState(D, 4), merge_steps() | {"X": X}) for X in (merge_steps()["X"], sparse(np.float32))
        ],
        "budget.removal_steps": fixed_steps(),
        "budget.projection_steps": fixed_steps(),
        "nystroem.Kernel": {"name": "poly", "gamma": 1.0, "coef0": 1.0, "degree": 3},
        "nystroem.Tree": tree(),
        "nystroem.Tree.route": [(nystroem.Tree(**tree()), {"X": X, **leaves}) for X in (rows(), sparse())],
        "nystroem.Landmarks": landmarks(),
        "nystroem.Landmarks.pairwise": [(values, {"X": X, "out": np.empty((N, 4))}) for X in (rows(), sparse())],
        "nystroem.Landmarks.evaluate": [(values, {"X": X, "out": np.empty((N, 7))}) for X in (rows(), sparse())],
        "nystroem.Machine": machine(),
        "nystroem.Machine.decision_values": [
            (whole, {"team": ALONE, "X": X, "out": np.empty((N, 1))}) for X in (rows(), sparse())
        ],
    }


def resolved(name: str, given: Any) -> list[Call]:
    """Calls of the function of this name."""
    found = []
    for one in given if isinstance(given, list) else [given]:
        owner, arguments = one if isinstance(one, tuple) else (None, one)
        function = attrgetter(name)(_native._module) if owner is None else getattr(owner, name.rpartition(".")[2])
        found.append((function, arguments))
    return found


CALLS = {name: resolved(name, given) for name, given in calls().items()}
ANY_LENGTH = {  # axes whose length no other argument fixes: with a shorter one the problem is smaller
    ("kernels.polynomial", "G"): {0, 1},
    ("shapley.add_shapley_values", "background"): {0},
    ("shapley.add_shapley_values", "out"): {0},
    ("dual.EntryRows32", "X"): {1},
    ("dual.EntryRows64", "X"): {1},
    ("csr.CSRMatrix", "indptr"): {0},
    ("csr.count_nonzeros", "X"): {1},
    ("dense.take_rows", "X"): {0},
    ("dense.take_columns", "Xt"): {1},
    ("dense.are_finite", "numbers"): {0},
    ("dense.second_moments", "X"): {0},
    ("linear.MulticlassHinge.slope", "rows"): {0},
    ("linear.MulticlassHinge.drop_linear_rows", "rows"): {0},
    ("linear.ascent_epoch", "order"): {0},
    ("linear.multiclass_epoch", "order"): {0},
    ("linear.squared_norms", "X"): {1},
    ("linear.count_values", "X"): {0, 1},
    ("budget.MergingState.run", "order"): {0},
    ("nystroem.Tree", "centres"): {2},
    ("nystroem.Landmarks", "landmarks"): {2},
    ("nystroem.Landmarks", "pseudo_distances"): {2},
}


def bound(module: ModuleType, prefix: str = "") -> Iterator[str]:
    """The names of all functions, classes and methods of a compiled module."""
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if isinstance(value, ModuleType):
            yield from bound(value, f"{prefix}{name}.")
        elif isinstance(value, type) and not issubclass(value, Exception):
            yield prefix + name
            methods = [key for key, method in vars(value).items() if type(method).__name__ == "nb_method"]
            yield from (f"{prefix}{name}.{key}" for key in methods if key != "__init__")
        elif callable(value) and not isinstance(value, type):
            yield prefix + name


def test_every_bound_function_has_arguments_here() -> None:
    assert set(bound(_native._module)) == set(CALLS)


def copies(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}


def wrong_kinds(array: np.ndarray) -> list[Any]:
    """Values whose dtype, byte order or number of dimensions no function takes."""
    array = np.ones_like(array)  # any values: what an empty array holds need not fit another dtype
    return [
        array.astype(np.complex128),
        array.astype(np.int16),
        array.astype(bool),
        array.astype(object),
        array.astype(array.dtype.newbyteorder(">")),
        array[None],
        np.array(1.0),
        array.tolist(),
        "array",
        1.0,
    ]


@pytest.mark.parametrize("name", CALLS)
def test_wrong_kinds_of_arguments_are_refused(name: str) -> None:
    for call, arguments in CALLS[name]:
        call(**copies(arguments))
        for key, good in arguments.items():
            for wrong in wrong_kinds(good) if isinstance(good, np.ndarray) else [object(), np.ones(3), b"bytes"]:
                with pytest.raises((TypeError, ValueError)):
                    call(**copies(arguments) | {key: wrong})
            with pytest.raises(TypeError):
                call(**copies({k: v for k, v in arguments.items() if k != key}), other=None)


@pytest.mark.parametrize("name", CALLS)
def test_sizes_and_layouts_that_do_not_fit_are_refused(name: str) -> None:
    for call, arguments in CALLS[name]:
        for key, good in arguments.items():
            if not isinstance(good, np.ndarray):
                continue
            spread = np.repeat(good, 2, axis=-1)[..., ::2]
            flipped = np.flip(good, -1)
            for wrong in (spread, flipped) if good.shape[-1] > 1 else ():
                with pytest.raises((TypeError, ValueError)):
                    call(**copies(arguments) | {key: wrong})
            for axis in range(good.ndim):
                others = good.take(range(good.shape[axis] - 1), axis), np.repeat(good, 2, axis)
                refused = [is_refused(call, copies(arguments) | {key: wrong}) for wrong in others]
                is_fixed = axis not in ANY_LENGTH.get((name, key), ())
                assert any(refused) or not is_fixed, f"{name}: no other length of axis {axis} of {key} was refused"
            is_refused(call, copies(arguments) | {key: np.empty((0,) * good.ndim, good.dtype)})
            fixed = good.copy()
            fixed.flags.writeable = False
            is_refused(call, copies(arguments) | {key: fixed})
            np.testing.assert_array_equal(fixed, good, f"{name} writes into a read-only {key}")


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_any_value_do_no_harm(name: str) -> None:
    """Indices and counts out of range, and numbers that are not finite, in each array and each scalar."""
    for call, arguments in CALLS[name]:
        for key, good in arguments.items():
            for wrong in hostile_values(good, name):
                is_refused(call, copies(arguments) | {key: wrong})


def hostile_values(good: Any, name: str) -> list[Any]:
    if isinstance(good, np.ndarray):
        hostile, numbers = [], [np.nan, np.inf, -1e300]
        if good.dtype.kind == "i":
            numbers = [-1, 10**6, np.iinfo(good.dtype).min, np.iinfo(good.dtype).max]
        for number in numbers:
            for place in (slice(None), slice(0, 1), slice(-1, None)):
                hostile.append(good.copy())
                with np.errstate(over="ignore", invalid="ignore"):
                    hostile[-1].reshape(-1)[place] = number
        return hostile
    if isinstance(good, bool) or not isinstance(good, int | float):
        return []
    if isinstance(good, float):
        return [0.0, -1.0, np.nan, np.inf, -np.inf, 1e300]
    large = {"dual.WorkingSet": [2**62], "Team.map": []}.get(
        name, [2**31, 2**62]
    )  # not gigabytes, nor calls without end
    return [-1, 0, -(2**31), -(2**63), *large]


def is_refused(call: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    """Whether the call raises one of the exceptions for arguments; any other one fails the test."""
    try:
        call(**arguments)
    except (ValueError, IndexError, TypeError, MemoryError):
        return True
    return False


def test_rows_to_route_may_be_a_view_of_the_leaves() -> None:
    X, chosen, expected = rows(), np.arange(N), np.empty(N, np.int32)
    router = nystroem.Tree(**tree())
    router.route(X, chosen.copy(), expected)
    leaves = np.append(chosen.view(np.int32), [0, 0]).astype(np.int32)
    router.route(X, leaves.view(np.int64)[:N], leaves[2 : N + 2])
    np.testing.assert_array_equal(leaves[2 : N + 2], expected)


def test_sizes_of_merging_problems_may_be_a_view_of_what_is_found() -> None:
    arguments = np.ones(4), np.ones((4, 3)), np.full((4, 3), -0.5, np.float32)
    found, expected = np.zeros((4, 2)), np.zeros((4, 2))
    sizes = found.reshape(-1).view(np.int64)[:4]
    sizes[:] = 3
    budget.find_partners(*arguments, sizes.copy(), merge_grids(), "gss", np.empty(4, np.int64), expected)
    budget.find_partners(*arguments, sizes, merge_grids(), "gss", np.empty(4, np.int64), found)
    np.testing.assert_array_equal(found, expected)


def test_the_order_of_steps_may_be_a_view_of_the_points() -> None:
    states = [budget.MergingState(D, 8) for _ in range(2)]
    for state, is_copied in zip(states, (True, False), strict=True):
        n_slots = state.points.shape[1]
        order = state.points.reshape(-1).view(np.int64)[n_slots // 2 - 1 :][
            :8
        ]  # order[1]: of the first slots of feature 1
        state.run(**merge_steps() | {"order": order.copy() if is_copied else order})
    for name in ("points", "slots", "counts", "sums"):
        np.testing.assert_array_equal(*(getattr(state, name) for state in states))
