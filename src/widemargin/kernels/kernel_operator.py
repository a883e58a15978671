"""A kernel matrix that is too large for memory, as a linear operator."""

from __future__ import annotations

import numpy as np

from .._threads import ThreadTeam
from .._types import DType, Matrix, RowIndices, Vector
from ..data.samples import Samples, SampleSubset
from .boxed_rows import add_local_product
from .functions import Kernel


class KernelOperator:
    """The kernel matrix K(X, X) (n, n) as a linear operator: its entries are computed for each product and not kept.

    `n_entries` counts those computed so far. Entries may be left out of products that round to nothing in `dtype`, by
    default that of the samples.
    """

    def __init__(self, kernel: Kernel, samples: Samples, team: ThreadTeam, dtype: DType | None = None) -> None:
        self.kernel = kernel
        self.samples = samples
        self.team = team
        self.dtype = dtype
        self.n_entries = 0

    def __len__(self) -> int:
        return len(self.samples)

    def add_product(
        self,
        rows: RowIndices,
        coef: Vector,
        f: Vector,
        columns: RowIndices | None = None,
    ) -> None:
        """f[columns] += coef @ K[rows, columns] for f of shape (n,), float64; all columns by default."""
        if columns is not None:
            f[columns] += self.products(rows, coef[None], columns)[0]
            return
        self.n_entries += len(rows) * len(self.samples)
        A = SampleSubset(self.samples, rows)
        add_local_product(self.kernel, A, coef[None], self.samples, f[None], self.team, self.dtype)

    def products(self, rows: RowIndices, coef: Matrix, columns: RowIndices) -> Matrix:
        """coef @ K[rows, columns], (k, c), for coef (k, r): each entry is computed once."""
        out = np.zeros((len(coef), len(columns)))
        if len(rows) and len(columns):
            self.n_entries += len(rows) * len(columns)
            A, B = (SampleSubset(self.samples, chosen) for chosen in (rows, columns))
            add_local_product(self.kernel, A, coef, B, out, self.team, self.dtype)
        return out
