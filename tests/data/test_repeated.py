"""Repeated rows with shifts, against a dense copy."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix, repeat_rows


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
def test_products_and_copies_are_those_of_a_dense_copy(form: type) -> None:
    rng = np.random.default_rng(0)
    X, places, shift = rng.normal(size=(9, 4)), np.tile(np.arange(9), 2), rng.normal(size=18)
    full, W, coef, base = X[places], rng.normal(size=(2, 4)), *rng.normal(size=(2, 2, 18))
    matrix = repeat_rows(make_design_matrix(form(X), ThreadTeam(1)), places, shift)
    chosen = np.array([1, 3, 10, 12, 17])
    for own, rows, shifts in ((matrix, full, shift), (matrix.take(chosen), full[chosen], shift[chosen])):
        n = len(rows)
        assert own.shape == (n, 4)
        np.testing.assert_allclose(own.matvec(W), W @ rows.T)
        np.testing.assert_allclose(own.decision_values(W), W @ rows.T + shifts)
        np.testing.assert_allclose(own.decision_values_at_zero(2), [shifts, shifts])
        np.testing.assert_allclose(own.rmatvec(coef[:, :n]), coef[:, :n] @ rows)
        np.testing.assert_allclose(own.rmatvec(coef[:, :n], base[:, :n]), (coef - base)[:, :n] @ rows)
    array, numbers = matrix.gather(chosen)
    np.testing.assert_allclose(array[numbers], full[chosen])
