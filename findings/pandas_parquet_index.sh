#!/usr/bin/env bash
# pandas 3.1.1: to_parquet saves an index of text as the last column; what takes the last column for the label learns it.
#
# Guess before the run: the columns of the file are those of the frame, as its docstring speaks of an index that is
# "saved as metadata" for ranges alone. Seen: a frame of x and y with row names is read by Polars 2.1.0 and pyarrow
# 26.0.1 as x, y, __index_level_0__, and the last column holds one class for each row.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet "pandas==3.1.1" "pyarrow==26.0.1" "polars==2.1.0"
cd "$place"
"$place/venv/bin/python" - <<'PYTHON'
import pandas as pd
import polars as pl
import pyarrow.parquet as pq

pd.DataFrame({"x": [1.5, 2.5], "y": ["u", "v"]}, index=["r", "s"]).to_parquet("a.parquet")
found = pl.read_parquet("a.parquet"), pq.read_table("a.parquet")
print(found[0].columns, found[1].column_names)
assert found[0].columns == found[1].column_names == ["x", "y", "__index_level_0__"]
assert found[0]["__index_level_0__"].to_list() == ["r", "s"]
PYTHON
