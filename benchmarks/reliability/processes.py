"""Threads in the life of a process: refused threads, forks, and an end while daemon threads fit, each many times.

Every repeat is a process of its own that prints whether its machines equal those of one thread, or of before; `crashed`
and `hung` (no end within two minutes) count the others. `enforced` counts the processes that were refused threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from measuring.experiment import Experiment, Row

SECONDS = 120

_BEGIN = """
import json, os, resource, sys, threading, time, warnings
import numpy as np
from measuring.experiment import Experiment, Row
from widemargin import BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier
from widemargin._native import Team

warnings.simplefilter("ignore")
rng = np.random.default_rng(int(sys.argv[1]))
X = rng.normal(size=(500, 20)).astype(np.float32)
y = X[:, 0] * X[:, 1] > 0
KINDS = BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier

def values(n_jobs):
    machines = [kind(n_jobs=n_jobs) for kind in KINDS]
    for machine in machines:
        if "random_state" in machine.get_params():
            machine.set_params(random_state=0)
    return np.concatenate([machine.fit(X, y).decision_function(X) for machine in machines])

def equal(n_jobs=2):
    return bool(np.array_equal(values(n_jobs), alone))

alone = values(1)
"""
_FORKED = """
child = os.fork()
if child == 0:
    os._exit(0 if equal() else 3)
here = equal()
_, status = os.waitpid(child, 0)
code = os.waitstatus_to_exitcode(status)
if code not in (0, 3):
    sys.exit(f"the child ended with {code}")
print(json.dumps({"equal": here and code == 0}))
"""
SITUATIONS = {
    "every thread is refused": """
if os.getuid() == 0:
    os.setuid(65534)  # the number of the administrator's threads has no limit
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
few = Team(100).n_threads
print(json.dumps({"equal": equal(100), "enforced": few < 100}))""",
    "fork after a fit": f"""
values(2)
{_FORKED}""",
    "fork during a fit": f"""
fitting = threading.Thread(target=values, args=(2,))
fitting.start()
time.sleep(rng.uniform(0.0, 0.2))
{_FORKED}
fitting.join()""",
    "end with daemon threads": """
def fit_and_predict(kind):
    while True:
        kind(n_jobs=2).fit(X, y).predict(X)

same = equal()
for kind in KINDS:
    threading.Thread(target=fit_and_predict, args=(kind,), daemon=True).start()
time.sleep(rng.uniform(0.0, 0.5))
print(json.dumps({"equal": same}))""",
    "end just after a fit": 'print(json.dumps({"equal": equal()}))',
}


def once(case: str, seed: int) -> tuple[str, dict[str, Any]]:
    """How a process ended, "equal", "different", "crashed" or "hung", and what it said."""
    command = [sys.executable, "-c", _BEGIN + SITUATIONS[case], str(seed)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "hung", {}
    if ended.returncode or ended.stderr:
        return "crashed", {"words": (ended.stderr.strip().splitlines() or [f"exit {ended.returncode}"])[-1]}
    said = json.loads(ended.stdout)
    return "equal" if said["equal"] else "different", said


def measure(case: str, run: Any) -> list[Row]:
    """Counts of a situation; two processes at a time."""
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda seed: once(case, seed), range(run.repeats)))
    counts = Counter(outcome for outcome, _ in ended)
    words = next((said["words"] for _, said in ended if "words" in said), "")
    ends = {outcome: counts[outcome] for outcome in ("equal", "different", "crashed", "hung")}
    enforced = sum(said["enforced"] for _, said in ended if "enforced" in said) if "Team" in SITUATIONS[case] else None
    return [{"case": case, "repeats": run.repeats, **ends, "enforced": enforced, "words": words}]


PROCESSES = Experiment(
    "processes",
    tuple(SITUATIONS),
    ("case",),
    measure,
    seconds=120.0,
    settings={"repeats": 20},
    quick={"cells": ["end just after a fit"], "repeats": 2},
)
