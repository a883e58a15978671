#!/usr/bin/env bash
# A LocalCluster of distributed leaves its workers' settings in the environment of the process that made it.
#
# Guess before the run: OMP_NUM_THREADS=1 and its kin are set for the worker processes alone, or are taken back when the
# cluster is closed.
# Seen with distributed 2026.8.0: after `close` os.environ has OMP_NUM_THREADS, MKL_NUM_THREADS and
# OPENBLAS_NUM_THREADS of 1 and MALLOC_TRIM_THRESHOLD_ of 65536, which were not there before. Every program that this
# process starts later inherits them: its BLAS has one thread, and its malloc returns freed memory at once.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet "distributed==2026.8.0" "numpy==2.4.6" "threadpoolctl==3.8.0"
cat >"$place/cluster.py" <<'PYTHON'
import os
import subprocess
import sys

from distributed import LocalCluster

NAMES = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"
COUNT = "import numpy, threadpoolctl; print(max(pool['num_threads'] for pool in threadpoolctl.threadpool_info()))"


def threads_of_a_child() -> int:
    return int(subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    for name in NAMES:
        os.environ.pop(name, None)
    before = threads_of_a_child()
    LocalCluster(n_workers=1, processes=True, dashboard_address=":0").close()
    left = {name: os.environ.get(name) for name in NAMES}
    after = threads_of_a_child()
    print(left, "BLAS threads of a child:", before, "->", after)
    assert left == dict(zip(NAMES, ["1", "1", "1", "65536"], strict=True))
    assert after == 1
PYTHON
"$place/venv/bin/python" "$place/cluster.py"
echo "as described"
