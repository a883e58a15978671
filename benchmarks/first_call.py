"""Seconds of the first fit and predict of a process with an empty home folder, beside those of the second.

::

    python benchmarks/first_call.py

Every estimator in a process of its own, on 1,000 and on 30,000 rows of 20 columns: import, first and second fit, first
and second predict, and a first fit that may take one second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import report

ESTIMATORS = {
    "DCSVMClassifier": "DCSVMClassifier()",
    "DCPredClassifier": "DCPredClassifier()",
    "DCPredRegressor": "DCPredRegressor()",
    "OCASClassifier": "OCASClassifier()",
    "BSGDClassifier": "BSGDClassifier(n_epochs=2)",
    "TwoStepKernelKMeans": "TwoStepKernelKMeans(8)",
    "LandmarkNystroem": "LandmarkNystroem()",
}
_COLUMNS = ["estimator", "rows", "import_seconds", "first_fit", "second_fit", "fit_extra", "first_predict"]
_COLUMNS += ["second_predict", "predict_extra", "limited_fit"]

_CODE = """
import json, sys, time, warnings
import numpy as np
n, limit = int(sys.argv[2]), sys.argv[3] == "limit"
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 20)).astype(np.float32)
y = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0).astype(int)
import sklearn.base, sklearn.utils.validation, scipy.sparse
warnings.simplefilter("ignore")
times = [time.perf_counter()]
import widemargin
from widemargin import *
times.append(time.perf_counter())
model = eval(sys.argv[1], vars(widemargin) | {name: getattr(widemargin, name) for name in widemargin.__all__})
if limit and "max_time" in model.get_params():
    model.set_params(max_time=1)
def ask():
    return (model.predict if hasattr(model, "predict") else model.transform)(X[:1000])
for call in (lambda: model.fit(X, y), lambda: model.fit(X, y), ask, ask):
    call()
    times.append(time.perf_counter())
    if limit and len(times) == 3:
        break
print(json.dumps([b - a for a, b in zip(times, times[1:])]))
"""


def run(call: str, n: int, mode: str) -> list[float]:
    """Seconds of the import and of the calls, in a fresh process with an empty home folder."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": str(Path(home) / "cache")}
        command = [sys.executable, "-c", _CODE, call, str(n), mode]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds: list[float] = json.loads(ended.stdout)
    return seconds


def main() -> None:
    """Measure, print and write the table."""
    rows = []
    for name, call in ESTIMATORS.items():
        for n in (1_000, 30_000):
            loading, first, second, ask, again = run(call, n, "free")
            limited = run(call, n, "limit")[1]
            rows.append(
                {
                    "estimator": name,
                    "rows": n,
                    "import_seconds": loading,
                    "first_fit": first,
                    "second_fit": second,
                    "fit_extra": first - second,
                    "first_predict": ask,
                    "second_predict": again,
                    "predict_extra": ask - again,
                    "limited_fit": limited,
                }
            )
            print(report.format_table(rows[-1:], _COLUMNS).splitlines()[-1], flush=True)
    print(report.format_table(rows, _COLUMNS))
    report.write_csv(report.RESULTS / "first_call.csv", rows)


if __name__ == "__main__":
    main()
