"""Compiled primitives on CSR rows."""

import numpy as np

from ._policy import kernel


@kernel
def _spread(data, indices, indptr, first, panel, width, clear):
    """Write rows first .. first + width as columns of a dense (d, w) panel, or clear them away again."""
    for k in range(width):
        for t in range(indptr[first + k], indptr[first + k + 1]):
            if clear:
                panel[indices[t], k] = 0
            else:
                panel[indices[t], k] += data[t]


@kernel
def csr_inner(data, indices, indptr, other_data, other_indices, other_indptr, panel, out):
    """Inner products of the CSR rows of one set with those of another.

    Given   two CSR row sets of one dtype; panel (d, w) of zeros; out (r, c), overwritten
    Cost    r nnz(other) + c nnz(one) vector operations of w entries: a row's non-zeros, four at a time, each
            scale a dense row of the panel, which holds w rows of the other set as columns
    Twin    one.toarray() @ other.toarray().T
    """
    width = panel.shape[1]
    n_columns = out.shape[1]
    for first in range(0, n_columns, width):
        w = min(width, n_columns - first)
        _spread(other_data, other_indices, other_indptr, first, panel, w, False)
        for i in range(out.shape[0]):
            into = out[i, first : first + w]
            into[:] = 0
            t = indptr[i]
            end = indptr[i + 1]
            while t + 4 <= end:
                v0, v1, v2, v3 = data[t], data[t + 1], data[t + 2], data[t + 3]
                r0, r1 = panel[indices[t]], panel[indices[t + 1]]
                r2, r3 = panel[indices[t + 2]], panel[indices[t + 3]]
                for k in range(w):
                    into[k] += v0 * r0[k] + v1 * r1[k] + v2 * r2[k] + v3 * r3[k]
                t += 4
            while t < end:
                v = data[t]
                row = panel[indices[t]]
                for k in range(w):
                    into[k] += v * row[k]
                t += 1
        _spread(other_data, other_indices, other_indptr, first, panel, w, True)


@kernel
def count_nonzeros(X, indptr):
    """Write into indptr (n + 1,) int64 where the non-zeros of each row of X (n, d) would start.

    Cost    one pass
    Twin    scipy.sparse.csr_array(X).indptr
    """
    indptr[0] = 0
    for i in range(X.shape[0]):
        count = 0
        row = X[i]
        for j in range(X.shape[1]):
            count += row[j] != 0
        indptr[i + 1] = indptr[i] + count


@kernel
def copy_nonzeros(X, data, indices):
    """Write the values and columns of the non-zeros of X (n, d), by rows; one entry more than there are is overwritten.

    Cost    one pass; no branch waits for a comparison
    Twin    scipy.sparse.csr_array(X)
    """
    t = 0
    for i in range(X.shape[0]):
        row = X[i]
        for j in range(X.shape[1]):
            data[t] = row[j]
            indices[t] = j
            t += row[j] != 0


@kernel
def csr_outputs(data, indices, indptr, W, out):
    """Products of CSR rows with k vectors, added up in float64.

    Given   CSR rows (n, d); W (k, d) float64; out (k, n) float64, overwritten
    Cost    k nnz multiplications; reads the rows k times: take no more than fit a cache
    Twin    W @ one.toarray().T
    """
    for c in range(out.shape[0]):
        for i in range(out.shape[1]):
            x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
            product = 0.0
            for t in range(x.shape[0]):
                product += x[t] * W[c, np.uint64(columns[t])]  # unsigned: no test for a negative index
            out[c, i] = product


@kernel
def csr_row_sum(data, indices, indptr, coef, out):
    """Weighted sums of CSR rows, one for each row of coef. Rows of weight 0 are not read.

    Given   CSR rows (n, d); coef (k, n) float64; out (k, d) float64, added to
    Cost    a multiplication for each non-zero of a row whose weight is not zero
    Twin    out += coef @ one.toarray()
    """
    for i in range(coef.shape[1]):
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for c in range(coef.shape[0]):
            scale = coef[c, i]
            if scale != 0.0:
                total = out[c]
                for t in range(x.shape[0]):
                    total[np.uint64(columns[t])] += scale * x[t]
