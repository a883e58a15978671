"""Columns without values: left out, and put back."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data.rows import occupied_columns, restore_columns


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_a_wide_matrix_is_restricted_to_columns_with_values(width: type) -> None:
    d = 2**31 - 1
    columns = np.array([d - 1, 7, 7, 0], width)
    X = sp.csr_array((np.arange(1.0, 5.0, dtype=np.float32), columns, np.array([0, 2, 3, 4], width)), shape=(3, d))
    narrow, found = occupied_columns(X)
    assert found is not None
    np.testing.assert_array_equal(found, [0, 7, d - 1])
    np.testing.assert_array_equal(narrow.toarray(), [[0, 2, 1], [0, 3, 0], [4, 0, 0]])
    assert np.shares_memory(narrow.data, X.data)
    restored = restore_columns(narrow, found, d)
    assert restored.shape == X.shape
    np.testing.assert_array_equal(restored.indices, X.indices)


def test_dense_rows_get_their_columns_back() -> None:
    restored = restore_columns(np.array([[1.0, 2.0]]), np.array([1, 3]), 5)
    np.testing.assert_array_equal(restored, [[0, 1, 0, 2, 0]])


@pytest.mark.parametrize("X", [sp.csr_array(np.eye(3)), np.eye(3)])
def test_a_matrix_of_no_fewer_values_than_columns_stays_as_it_is(X: object) -> None:
    found, columns = occupied_columns(X)
    assert found is X
    assert columns is None
    assert restore_columns(found, columns, 3) is X


def test_no_column_has_values() -> None:
    narrow, columns = occupied_columns(sp.csr_array((2, 9)))
    assert narrow.shape == (2, 0)
    assert restore_columns(narrow, columns, 9).shape == (2, 9)
