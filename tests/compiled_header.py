"""A header of `to_c` as a C compiler makes it: shared by the tests of exports and of models that are read."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("cc") or shutil.which("gcc")
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wdouble-promotion", "-pedantic"]
PROGRAM = """
#include "model.h"
void run(const float *rows, int n, float *scores, int *numbers);
void run(const float *rows, int n, float *scores, int *numbers)
{
    for (int i = 0; i < n; ++i) {
        numbers[i] = 0;
        %smodel_predict(rows + i * MODEL_N_FEATURES, scores + i * MODEL_N_SCORES);
    }
}
"""


def run(header: str, X: Any, folder: Path) -> tuple[Any, Any]:
    """Scores and class numbers of rows, by the header as it is compiled, without a warning."""
    (folder / "model.h").write_text(header)
    (folder / "run.c").write_text(PROGRAM % ("numbers[i] = " if "int model_predict" in header else ""))
    library = folder / f"{len(list(folder.iterdir()))}.so"  # a name that is loaded for the first time
    subprocess.run([COMPILER, *FLAGS, "-shared", "-fPIC", "-o", library, folder / "run.c", "-lm"], check=True)
    X = np.ascontiguousarray(X, np.float32)
    q = int(header.partition("N_SCORES = ")[2].split()[0])
    scores, numbers = np.full((len(X), q), np.nan, np.float32), np.empty(len(X), np.int32)
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (X, scores, numbers))
    rows, *results = pointers
    ctypes.CDLL(str(library)).run(rows, len(X), *results)
    return scores, numbers
