"""Glasmachers and Qaadan's experiments: Tables 2 and 3, Figures 2 and 3, and accuracy against time.

    python benchmarks/papers/bsgd.py tables --sets ijcnn1 a9a     # accuracy, times, decisions of the four rules
    python benchmarks/papers/bsgd.py speed --sets ijcnn1          # steps a second over the budget and the features
    python benchmarks/papers/bsgd.py tradeoff --sets ijcnn1 a9a   # B = 50 ... 2000 beside SGD on random features
    python benchmarks/papers/bsgd.py rival --folder BIN           # beside BudgetedSVM's programs, built elsewhere
    python benchmarks/papers/bsgd.py stream                       # 5,000,000 rows: steps a second, peak memory
    python benchmarks/papers/bsgd.py plots                        # from the CSV files of the others

Every run adds its sets' rows to the CSV files in benchmarks/results and leaves those of other sets alone. One thread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _problems import Problem, load_problem
from _process import peak_bytes
from _report import RESULTS, format_table, machine_card, read_csv, write_csv

from widemargin import BSGDClassifier
from widemargin._native import budget as compiled
from widemargin._progress import Progress
from widemargin._threads import blas_limit
from widemargin.algorithms.bsgd import BudgetedSGD
from widemargin.kernels.functions import RBF
from widemargin.solvers.sgd import RULES, find_partner, merge_table
from widemargin.solvers.sgd.budgeted_machine import StepSettings

Vector = NDArray[np.float64]

FAST = ("lookup-wd", "lookup-h", "gss")
PIECES = 40  # of a run of several rules, which alternate
EPOCHS = {"ijcnn1": 20, "a9a": 20, "codrna": 20, "covtype_20k": 20, "kddcup99_10": 5, "mnist": 5, "patches": 1}
PAPER = {  # test accuracy of gss-precise, gss, lookup-h, lookup-wd: Table 2; the rest: Table 3
    ("ijcnn1", 100): {"gss-precise": 97.141, "gss": 96.807, "lookup-h": 97.132, "lookup-wd": 97.130},
    ("ijcnn1", 500): {"gss-precise": 98.138, "gss": 98.055, "lookup-h": 98.113, "lookup-wd": 98.070},
    ("a9a", 100): {"gss-precise": 84.234, "gss": 84.166, "lookup-h": 84.164, "lookup-wd": 84.200},
    ("a9a", 500): {"gss-precise": 84.280, "gss": 83.739, "lookup-h": 83.836, "lookup-wd": 83.949},
}
PAPER_COLUMNS = ("paper merging frequency %", "paper equal %", "paper factor gss", "paper factor lookup-wd")
PAPER_DECISIONS = {"ijcnn1": (17, 91.79, 1.02429, 1.00149), "a9a": (32, 92.54, 1.05064, 1.00402)}


class Run(NamedTuple):
    """One training."""

    seconds: Vector  # of each piece
    steps: int
    mergers: int
    sgd: BudgetedSGD


def settings_of(problem: Problem, budget: int, rule: str, lam: float | None = None) -> StepSettings:
    """lam = 1 / (C n)."""
    return StepSettings(RBF(problem.gamma), lam or 1 / (problem.C * len(problem.y)), budget=budget, merge=rule)


def load(name: str) -> Problem:
    """A problem of `_problems`; of patches, 500,000 rows."""
    return load_problem(name, n_rows=500_000 if name == "patches" else None)


def train(problem: Problem, budget: int, rules: Sequence[str], n_epochs: int, seed: int) -> dict[str, Run]:
    """Passes in random order, the same for all rules, which alternate piece by piece.

    So whatever else the machine does slows all of them. Only steps are timed.
    """
    rng, signed_weights = np.random.default_rng(seed), problem.y.astype(np.float64)
    order = np.concatenate([rng.permutation(len(problem.y)) for _ in range(n_epochs)])
    first = seed % len(rules)  # where its memory lies is luck: none is always the first to get some
    rules = (*rules[first:], *rules[:first])
    solvers = {rule: BudgetedSGD(settings_of(problem, budget, rule), problem.X, 1) for rule in rules}
    seconds = {rule: np.zeros(PIECES) for rule in rules}
    for at, piece in enumerate(np.array_split(order, PIECES)):
        first = at % len(rules)
        for rule in (*rules[first:], *rules[:first]):
            start = time.perf_counter()
            solvers[rule].machines[0].run(problem.X, piece, signed_weights)
            seconds[rule][at] = time.perf_counter() - start
    totals = {rule: sgd.totals() for rule, sgd in solvers.items()}
    return {rule: Run(seconds[rule], t.steps, t.mergers, solvers[rule]) for rule, t in totals.items()}


def step_seconds(problem: Problem, sgd: BudgetedSGD) -> float:
    """Seconds of a step without its merger: of rows of weight 0, whose decision values are computed as well."""
    order = np.random.default_rng(0).permutation(len(problem.y))[:100_000]
    nothing = np.zeros((1, len(problem.y)))
    start = time.perf_counter()
    sgd.take_steps(problem.X, nothing, order, Progress(), 1)
    return (time.perf_counter() - start) / len(order)


def merger_seconds(problem: Problem, sgd: BudgetedSGD, rule: str, n: int = 5000) -> float:
    """Seconds of a merger, its search included: with a tiny step size, every row is within the margin."""
    settings = settings_of(problem, sgd.settings.budget, rule, lam=1e12)
    order, signed_weights = np.random.default_rng(1).permutation(len(problem.y))[:n], problem.y.astype(np.float64)[None]
    best, without = np.inf, np.inf
    for _ in range(5):
        busy = BudgetedSGD(settings, problem.X, 1, sgd.states())
        start = time.perf_counter()
        busy.take_steps(problem.X, signed_weights, order, Progress(), 1)
        best = min(best, time.perf_counter() - start)
        start = time.perf_counter()
        busy.take_steps(problem.X, 0 * signed_weights, order, Progress(), 1)
        without = min(without, time.perf_counter() - start)
    return (best - without) / len(order)


def accuracy(problem: Problem, sgd: BudgetedSGD) -> float:
    """Test accuracy in percent."""
    return 100 * float(np.mean((sgd.model().decision_values(problem.X_test)[:, 0] > 0) == (problem.y_test > 0)))


# Merging problems as they occur ------------------------------------------------------------------------------------


class Decision(NamedTuple):
    """Coefficients of one sign, and ln k of their points with point i of the smallest one, which is to be merged."""

    i: int
    coef: Vector
    log_kappa: Vector


def record_decisions(problem: Problem, budget: int, n_epochs: int, per_look: int = 60) -> list[Decision]:
    """Merging problems at 40 steps of a run with lookup-wd, one for each next row within the margin."""
    sgd = BudgetedSGD(settings_of(problem, budget, "lookup-wd"), problem.X, 1)
    signed_weights, rng, found = problem.y.astype(np.float64)[None], np.random.default_rng(1), []
    order = np.concatenate([rng.permutation(len(problem.y)) for _ in range(min(n_epochs, 4))])
    for part in np.array_split(order, 40):
        sgd.take_steps(problem.X, signed_weights, part, Progress(), 1)
        if len(sgd.machines[0]) == budget:
            found += list(_decisions_at(problem, sgd, rng, per_look))
    return found


def _decisions_at(problem: Problem, sgd: BudgetedSGD, rng: np.random.Generator, most: int) -> Iterator[Decision]:
    rows = rng.choice(len(problem.y), min(2000, len(problem.y)), replace=False)
    model, steps = sgd.model(), sgd.totals().steps
    y = problem.y[rows].astype(np.float64)
    weight = 1 / (sgd.settings.lam * steps)
    violating = rows[y * model.decision_values(problem.X[rows])[:, 0] < 1][:most]
    for row in violating:
        points = np.concatenate([model.points, problem.X[row : row + 1]]).astype(np.float64)
        coef = np.append(model.coef[0], problem.y[row] * weight)
        size = np.abs(coef)
        i = len(coef) - 1 if size[-1] <= size.min() * (1 + 1e-12) else int(size.argmin())
        candidates = np.flatnonzero(coef * coef[i] > 0)
        if len(candidates) > 1:
            log_kappa = -problem.gamma * np.sum((points[candidates] - points[i]) ** 2, axis=1)
            yield Decision(int(np.flatnonzero(candidates == i)[0]), coef[candidates] / weight, log_kappa)


def exact_degradations(decision: Decision) -> Vector:
    """Squared degradation with every candidate, the best h by bisection on the sign of s', in float64; inf for i."""
    m = decision.coef / (decision.coef + decision.coef[decision.i])
    log_odds, rate = np.log(m / np.maximum(1 - m, 1e-300)), -decision.log_kappa
    low, high = np.zeros_like(m), np.ones_like(m)
    for _ in range(55):
        u = (low + high) / 2
        with np.errstate(divide="ignore"):
            is_rising = log_odds - 2 * np.arctanh(u) + u * rate > 0
        low, high = np.where(is_rising, u, low), np.where(is_rising, high, u)
    lost = degradations(decision, (1 + low) / 2)
    lost[decision.i] = np.inf
    return lost


def degradations(decision: Decision, h: Vector) -> Vector:
    """Squared degradation of merging with each candidate at h.

    wd = m^2 (1 - A^2) + (1 - m)^2 (1 - B^2) - 2 m (1 - m) (A B - kappa) with A, B the kernel values of z: by expm1, as
    differences of nearly equal numbers would leave nothing of a small one.
    """
    total = decision.coef + decision.coef[decision.i]
    m, log_kappa = decision.coef / total, decision.log_kappa
    a, b = (1 - h) ** 2 * log_kappa, h**2 * log_kappa
    wd = -(m**2) * np.expm1(2 * a) - (1 - m) ** 2 * np.expm1(2 * b)
    wd -= 2 * m * (1 - m) * (np.exp(a + b) - np.exp(log_kappa))
    return np.asarray(total**2 * np.maximum(wd, 0))


def judge(decisions: list[Decision]) -> dict[str, float]:
    """Share of equal choices of gss and lookup-wd, and the factor by which each exceeds the least degradation."""
    chosen: dict[str, list[int]] = {rule: [] for rule in FAST}
    factor: dict[str, list[float]] = {rule: [] for rule in FAST}
    for decision in decisions:
        least = float(exact_degradations(decision).min())
        for rule in FAST:
            j, h, _ = find_partner(decision.i, decision.coef, decision.log_kappa, rule)
            lost = float(degradations(decision, np.full(len(decision.coef), h))[j])
            chosen[rule].append(j)
            if least > 1e-9 * decision.coef[decision.i] ** 2:  # equal points: any factor of nothing is nothing
                factor[rule].append(lost / least)
    # kappa and m are float32: what a rule does to the seventh digit is luck
    out = {f"factor {rule}": round(float(np.mean(factor[rule])), 6) if factor[rule] else 1.0 for rule in FAST}
    equal = float(np.mean(np.array(chosen["gss"]) == np.array(chosen["lookup-wd"])))
    return {"decisions": len(decisions), "equal %": 100 * equal, **out}


def search_nanoseconds(decisions: list[Decision], rule: str, repeats: int = 5) -> float:
    """Seconds of one search for a candidate, exponentials of the kernel values included, on recorded problems."""
    n, width = len(decisions), max(len(d.coef) for d in decisions)
    coef, log_kappa = np.ones((n, width)), np.zeros((n, width), np.float32)
    own, sizes = np.array([d.coef[d.i] for d in decisions]), np.array([len(d.coef) - 1 for d in decisions])
    for p, d in enumerate(decisions):
        coef[p, : sizes[p]], log_kappa[p, : sizes[p]] = np.delete(d.coef, d.i), np.delete(d.log_kappa, d.i)
    best, tables, partners, found = np.inf, merge_table().tables, np.empty(n, np.int64), np.empty((n, 2))
    for _ in range(repeats + 1):
        start = time.perf_counter()
        compiled.find_partners(own, coef, log_kappa, sizes, tables, rule, partners, found)
        best = min(best, time.perf_counter() - start)
    return 1e9 * best / n


# Tables 2 and 3 -----------------------------------------------------------------------------------------------------


def tables(name: str, budgets: Sequence[int], n_seeds: int, precise: Sequence[int]) -> list[dict[str, Any]]:
    """Every rule at every budget; gss-precise, which is slow, apart, on one seed, at the budgets of `precise`."""
    problem, rows = load(name), []
    for budget in budgets:
        runs: dict[str, list[Run]] = {rule: [] for rule in RULES}
        scores: dict[str, list[float]] = {rule: [] for rule in RULES}
        mergers: dict[str, list[float]] = {rule: [] for rule in RULES}
        steps: list[float] = []
        for seed in range(n_seeds):
            new = train(problem, budget, FAST, EPOCHS[name], seed)
            if budget in precise and seed == 0:
                new |= train(problem, budget, ("gss-precise",), EPOCHS[name], seed)
            for rule, run in new.items():
                scores[rule].append(accuracy(problem, run.sgd))
                steps.append(step_seconds(problem, run.sgd))
                if seed < 2:
                    mergers[rule].append(merger_seconds(problem, run.sgd, rule))
                runs[rule].append(run._replace(sgd=None))  # type: ignore[arg-type]
        decisions = record_decisions(problem, budget, EPOCHS[name])
        verdict = judge(decisions)
        for rule in filter(runs.get, RULES):
            row: dict[str, Any] = {"set": name, "budget": budget, "rule": rule, "epochs": EPOCHS[name]}
            row |= _table_row(runs[rule], scores[rule], min(mergers[rule]), float(np.median(steps)))
            row |= _saved(runs[rule], runs["gss"]) if rule in FAST else {}
            row["search ns"] = search_nanoseconds(decisions[:500], rule)
            row["paper accuracy %"] = PAPER.get((name, budget), {}).get(rule)
            if rule == "lookup-wd":
                row |= verdict | dict(zip(PAPER_COLUMNS, PAPER_DECISIONS.get(name, ()), strict=False))
            rows.append(row)
        gss = next(row for row in rows[::-1] if row["rule"] == "gss")
        for row in rows[-sum(map(bool, runs.values())) :]:
            row["merging saved %"] = 100 * (1 - row["merging seconds"] / gss["merging seconds"])
    return rows


def _table_row(runs: list[Run], scores: list[float], merger: float, step: float) -> dict[str, Any]:
    n_steps, seconds = runs[0].steps, float(np.median([run.seconds.sum() for run in runs]))
    mergers = float(np.mean([run.mergers for run in runs]))
    return {
        "seeds": len(runs),
        "accuracy %": float(np.mean(scores)),
        "std": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        "seconds": seconds,
        "merging seconds": mergers * merger,
        "merger ns": 1e9 * merger,
        "steps per second": n_steps / seconds,
        "step ns": 1e9 * step,
        "merging frequency %": 100 * mergers / n_steps,
    }


def _saved(runs: list[Run], gss: list[Run]) -> dict[str, float]:
    """Time saved in percent of that of gss on the same piece of the same run: median and quartiles over all pieces."""
    saved = 100 * (1 - np.concatenate([a.seconds / b.seconds for a, b in zip(runs, gss, strict=True)]))
    low, middle, high = np.quantile(saved, [0.25, 0.5, 0.75])
    return {"total saved %": middle, "total saved q1 %": low, "total saved q3 %": high}


# Speed, and accuracy against time -----------------------------------------------------------------------------------


def speed(name: str) -> list[dict[str, Any]]:
    """Steps a second over the budget, and over the number of features (columns of the same rows, repeated)."""
    problem, rows = load(name), []
    d = problem.X.shape[1]
    for budget, copies in [(50, 1), (100, 1), (200, 1), (400, 1), (800, 1), (1600, 1), (100, 2), (100, 4), (100, 8)]:
        wide = problem._replace(X=np.tile(problem.X, copies) / np.float32(copies**0.5))
        run = train(wide, budget, ["lookup-wd"], 3, 0)["lookup-wd"]
        rate = run.steps / run.seconds.sum()
        rows.append({"set": name, "budget": budget, "features": d * copies, "steps per second": rate})
        rows[-1]["multiply-adds per second"] = rate * budget * d * copies
    return rows


def tradeoff(name: str) -> list[dict[str, Any]]:
    """BSGD, and linear SGD on as many random features or landmarks, so that a prediction costs as much."""
    problem, rows = load(name), []
    for budget in (50, 100, 200, 500, 1000, 2000):
        run = train(problem, budget, ["lookup-wd"], 5, 0)["lookup-wd"]
        seconds = float(run.seconds.sum())
        rows.append(_tradeoff_row(name, "BSGD lookup-wd", budget, seconds, accuracy(problem, run.sgd)))
        for label in ("random Fourier features + SGD", "Nystroem + SGD"):
            with blas_limit(1):
                rows.append(_tradeoff_row(name, label, budget, *_linear_sgd(problem, label, budget)))
    return rows


def _tradeoff_row(name: str, method: str, budget: int, seconds: float, score: float) -> dict[str, Any]:
    return {"set": name, "method": method, "budget": budget, "epochs": 5, "seconds": seconds, "accuracy %": score}


def _linear_sgd(problem: Problem, label: str, n_features: int) -> tuple[float, float]:
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    maker = Nystroem if label.startswith("Nystroem") else RBFSampler
    features = maker(gamma=problem.gamma, n_components=n_features, random_state=0)
    linear = SGDClassifier(alpha=1 / (problem.C * len(problem.y)), max_iter=5, tol=None, random_state=0)
    model = make_pipeline(features, linear)
    start = time.perf_counter()
    model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    return seconds, 100 * float(model.score(problem.X_test, problem.y_test))


# BudgetedSVM, and a long stream --------------------------------------------------------------------------------------


def rival(name: str, folder: Path, n_epochs: int = 3, budget: int = 100) -> list[dict[str, Any]]:
    """Same problem, budget and passes, five runs each. Its seconds do not count the reading of the file.

    They are the difference of runs of one and of several passes. It has no argument for the seed; every run is another.
    """
    from sklearn.datasets import dump_svmlight_file

    problem, rows = load(name), []
    for seed in range(5):
        run = train(problem, budget, ["lookup-wd"], n_epochs, seed)["lookup-wd"]
        seconds = float(run.seconds.sum()) / n_epochs
        rows.append(_rival_row(name, "widemargin", n_epochs, seconds, accuracy(problem, run.sgd)))
    with tempfile.TemporaryDirectory() as place:
        files = {"train": (problem.X, problem.y), "test": (problem.X_test, problem.y_test)}
        for part, (X, y) in files.items():
            dump_svmlight_file(X, y.astype(int), f"{place}/{part}", zero_based=False)
        one, _ = _run_rival(problem, folder, place, 1, budget)
        for _ in range(5):
            many, score = _run_rival(problem, folder, place, n_epochs, budget)
            rows.append(_rival_row(name, "BudgetedSVM BSGD", n_epochs, (many - one) / (n_epochs - 1), score))
    for row in rows:
        row["steps per second"] = len(problem.y) / row["seconds a pass"]
    return rows


def _rival_row(name: str, program: str, n_epochs: int, seconds: float, score: float) -> dict[str, Any]:
    return {"set": name, "program": program, "budget": 100, "epochs": n_epochs} | {
        "seconds a pass": seconds,
        "accuracy %": score,
    }


def _run_rival(problem: Problem, folder: Path, place: str, n_epochs: int, budget: int) -> tuple[float, float]:
    """Seconds of its training program, and its test accuracy.

    Its kernel is exp(-g/2 |x - z|^2). It has one function a class, f and -f here, whose difference 2 f must be above 1:
    L/2 |2 f|^2 / 2 is then what is regularised, and twice our lam gives our problem.
    """
    twice_lam = 2 / (problem.C * len(problem.y))
    options = f"-A 4 -B {budget} -L {twice_lam:.12g} -b 0 -e {n_epochs} -g {2 * problem.gamma} -m 1 -S 0"
    start = time.perf_counter()
    subprocess.run(
        [folder / "budgetedsvm-train", *options.split(), f"{place}/train", f"{place}/model"],
        check=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - start
    subprocess.run(
        [folder / "budgetedsvm-predict", f"{place}/test", f"{place}/model", f"{place}/out"],
        check=True,
        capture_output=True,
    )
    labels = np.loadtxt(f"{place}/out", usecols=0)
    return seconds, 100 * float(np.mean(labels == problem.y_test))


def stream(name: str, n_rows: int = 5_000_000, chunk: int = 100_000) -> list[dict[str, Any]]:
    """Rows of a set with a little noise, made chunk by chunk and not kept."""
    problem, rng = load(name), np.random.default_rng(0)
    model = BSGDClassifier(gamma=problem.gamma, lam=1 / (problem.C * n_rows), budget=100)
    seconds, rows = 0.0, []
    for part in range(n_rows // chunk):
        chosen = rng.integers(len(problem.y), size=chunk)
        X = problem.X[chosen] + rng.normal(0, 0.01, (chunk, problem.X.shape[1])).astype(np.float32)
        start = time.perf_counter()
        model.partial_fit(X, problem.y[chosen], classes=[-1, 1])
        seconds += time.perf_counter() - start
        if (part + 1) in (5, 10, 20, n_rows // chunk):
            row = {"set": name, "rows": (part + 1) * chunk, "seconds": seconds, "peak bytes": peak_bytes()}
            rows.append(row | {"accuracy %": 100 * float(model.score(problem.X_test, problem.y_test))})
    return rows


# Files and pictures --------------------------------------------------------------------------------------------------


def keep(what: str, name: str, rows: list[dict[str, Any]]) -> None:
    """Replace a set's rows in the CSV file, and print them."""
    path = RESULTS / f"bsgd_{what}.csv"
    others = [row for row in read_csv(path) if row["set"] != name]
    write_csv(path, others + rows, machine_card())
    print(format_table(rows, [key for key in rows[0] if key not in ("set", "epochs")]), flush=True)


def main() -> None:
    """Run one experiment on some sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "speed", "tradeoff", "rival", "stream", "plots"))
    parser.add_argument("--sets", nargs="+", default=["ijcnn1", "a9a"], choices=tuple(EPOCHS))
    parser.add_argument("--budgets", nargs="+", type=int, default=[100, 500])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--precise", nargs="*", type=int, default=[100], help="budgets of gss-precise, the slowest rule"
    )
    parser.add_argument("--folder", type=Path, help="of BudgetedSVM's programs")
    args = parser.parse_args()
    if args.what == "plots":
        from _bsgd_plots import draw_all

        draw_all()
        return
    for rule in RULES:  # compiled, and warm, before any clock runs
        train(load_problem("patches", n_rows=2000), 20, [rule], 1, 0)
    for name in args.sets:
        print(f"\n{args.what}: {name}")
        experiments = {
            "tables": lambda name=name: tables(name, args.budgets, args.seeds, args.precise),
            "speed": lambda name=name: speed(name),
            "tradeoff": lambda name=name: tradeoff(name),
            "rival": lambda name=name: rival(name, args.folder),
            "stream": lambda name=name: stream(name),
        }
        keep(args.what, name, experiments[args.what]())


if __name__ == "__main__":
    main()
