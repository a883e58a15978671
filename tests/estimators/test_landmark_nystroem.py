"""LandmarkNystroem: the estimator contract, exactness with all rows as landmarks, less error than scikit-learn's."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from peak_memory import peak_of
from widemargin import LandmarkNystroem
from widemargin.estimators.landmark_nystroem import _METHODS
from widemargin.kernels.functions import FUNCTION_KERNELS
from widemargin.kernels.functions import KERNELS as OWN_KERNELS

KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 1.0},
    "linear": {},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}
RULES = [("rbf", "triangle"), ("laplacian", "triangle"), *((kernel, "polynomial") for kernel in KERNELS)]


@pytest.fixture(scope="module")
def digits():
    return load_digits().data / 16


def gram(X, kernel, Y=None):
    options = {k: v for k, v in KERNELS[kernel].items() if kernel != "linear"}
    return pairwise_kernels(X, Y, metric=kernel, **options)


def relative_error(K, Z):
    return np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)


@pytest.mark.filterwarnings("ignore:n_landmarks=")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_with_all_rows_as_landmarks_it_is_the_kernel(kernel, digits) -> None:
    X = digits[:60]
    Z = LandmarkNystroem(100, kernel=kernel, **KERNELS[kernel]).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, gram(X, kernel), atol=1e-8)


@pytest.mark.parametrize(("kernel", "pseudo"), RULES)
def test_coordinates_are_features_times_the_factor(kernel, pseudo, digits) -> None:
    """Against the definition, written out for every row, landmark and pseudo-landmark."""
    X, m, p = digits[:150], 6, 9
    model = LandmarkNystroem(
        m, kernel=kernel, n_pseudo_landmarks=p, pseudo=pseudo, random_state=0, **KERNELS[kernel]
    ).fit(X)
    U = model.landmarks_
    X = np.concatenate([U, X])  # the rows on which W is estimated
    C = gram(X, kernel, U)
    if pseudo == "polynomial":
        i, j = model._pseudo["pairs"][0]
        assert np.all(i <= j)
        extra = C[:, i] * C[:, j]
    else:
        norm = 2 if kernel == "rbf" else 1
        near = np.linalg.norm(X[:, None] - U, ord=norm, axis=2)[:, :, None]
        anchors = model._pseudo["pseudo_distances"][0]
        bounds = np.abs(near - anchors).max(axis=1), (near + anchors).min(axis=1)
        extra = np.exp(-KERNELS[kernel]["gamma"] * bounds[model._pseudo["bounds"][0]] ** norm)
    C = np.hstack([C, extra])
    np.testing.assert_allclose(model.transform(X), C @ model.factor_, atol=1e-7 * np.abs(model.factor_).max())
    inverse = np.linalg.pinv(C, rcond=156 * np.finfo(float).eps)
    W = inverse @ gram(X, kernel) @ inverse.T
    if kernel != "sigmoid":
        np.testing.assert_allclose(C @ model.factor_ @ model.factor_.T @ C.T, C @ W @ C.T, atol=1e-6)


@pytest.mark.parametrize(("kernel", "m"), [("rbf", 40), ("laplacian", 20), ("poly", 20)])
def test_error_is_below_that_of_scikit_learn(kernel, m, digits) -> None:
    X = digits[:150]
    K = gram(X, kernel)
    ours, theirs = [], []
    for seed in range(3):
        options = {"kernel": kernel, "random_state": seed, **KERNELS[kernel]}
        ours.append(relative_error(K, LandmarkNystroem(m, n_sample=120, **options).fit_transform(X)))
        theirs.append(relative_error(K, Nystroem(n_components=m, **options).fit_transform(X)))
    assert max(ours) < min(theirs)


@pytest.mark.parametrize(("kernel", "pseudo"), [*RULES[:3], ("poly", "polynomial")])
def test_pseudo_landmarks_reduce_the_error(kernel, pseudo, digits) -> None:
    """On the rows that the matrix is estimated on they cannot do otherwise, the kernel being positive semidefinite."""
    X, options = digits[:120], {"kernel": kernel, "random_state": 0, **KERNELS[kernel]}
    K = gram(X, kernel)
    plain = relative_error(K, LandmarkNystroem(10, **options).fit_transform(X))
    more = LandmarkNystroem(10, n_pseudo_landmarks=30, pseudo=pseudo, **options).fit_transform(X)
    assert relative_error(K, more) < 0.95 * plain


def test_weights_draw_the_landmarks(digits) -> None:
    X, weights = digits[:400], np.ones(400)
    weights[:50] = 1000.0
    errors = []
    for given in (None, weights):
        Z = LandmarkNystroem(25, gamma=0.3, random_state=0).fit(X, sample_weight=given).transform(X[:50])
        errors.append(relative_error(gram(X[:50], "rbf"), Z))
    assert errors[1] < 0.9 * errors[0]


@pytest.mark.parametrize(
    ("kernel", "pseudo", "dtype"), [(*RULES[0], np.float32), *((*rule, np.float64) for rule in RULES)]
)
def test_sparse_rows_and_threads_give_the_same(kernel, pseudo, dtype, digits) -> None:
    X = digits[:120].astype(dtype)
    options = {"kernel": kernel, "pseudo": pseudo, "n_pseudo_landmarks": 8, "random_state": 0, **KERNELS[kernel]}
    model = LandmarkNystroem(8, n_jobs=1, **options).fit(X)
    Z = model.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (120, model.get_feature_names_out().size)
    tol = 2e-2 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(model.transform(sp.csr_array(X)), Z, atol=tol)
    many = np.tile(X, (12, 1))
    np.testing.assert_array_equal(model.transform(many), model.set_params(n_jobs=2).transform(many))
    sparse = LandmarkNystroem(8, **options).fit(sp.csr_array(X)).transform(sp.csr_array(X))
    np.testing.assert_allclose(sparse @ sparse.T, Z @ Z.T, atol=tol)


def test_small_memory_means_fewer_rows(digits) -> None:
    model = LandmarkNystroem(10, n_sample=1000, memory_budget="1MB", random_state=0)
    assert len(model._sample(digits, 10, np.random.default_rng(0))) < 300
    assert np.isfinite(model.fit_transform(digits)).all()


def test_equal_rows_and_too_many_landmarks() -> None:
    X = np.repeat(np.eye(3), 20, axis=0)
    with pytest.warns(UserWarning, match="n_landmarks=50, but there are 3 distinct rows"):
        Z = LandmarkNystroem(50, gamma=1.0, random_state=0).fit_transform(X)
    assert Z.shape == (60, 3)
    np.testing.assert_allclose(Z @ Z.T, pairwise_kernels(X, metric="rbf", gamma=1.0), atol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("error:n_landmarks")
def test_rows_that_a_sample_lacks_are_landmarks_too() -> None:
    """Of 60,000 rows 20,000 are clustered, and a third of the 101 distinct ones are among these."""
    rng = np.random.default_rng(0)
    X = np.zeros((60_000, 3))
    X[rng.choice(60_000, 100, replace=False)] = rng.normal(size=(100, 3))
    assert len(LandmarkNystroem(50, gamma=1.0, random_state=0).fit(X).landmarks_) == 50
    with pytest.warns(UserWarning, match="n_landmarks=200, but there are 101 distinct rows"):
        model = LandmarkNystroem(200, gamma=1.0, random_state=0).fit(X)
    D = np.unique(X, axis=0)
    Z = model.transform(D)
    np.testing.assert_allclose(Z @ Z.T, pairwise_kernels(D, metric="rbf", gamma=1.0), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
def test_own_landmarks(form, digits) -> None:
    """Those of a fit give its coordinates again; a copy of them is kept."""
    X = form(digits)
    first = LandmarkNystroem(20, random_state=0).fit(X)
    own = np.asfortranarray(first.landmarks_, np.float64)
    model = LandmarkNystroem(landmarks=own, random_state=0).fit(X)
    assert model.landmarks_.dtype == X.dtype
    np.testing.assert_array_equal(model.landmarks_, first.landmarks_)
    np.testing.assert_allclose(model.transform(X), first.transform(X), rtol=1e-3, atol=1e-4)
    Z = model.transform(X).astype(float)
    assert model.trace_error_ == pytest.approx(1 - np.sum(Z**2) / len(Z), abs=1e-5)
    own[:] = 0.0
    np.testing.assert_array_equal(model.landmarks_, first.landmarks_)
    sparse = LandmarkNystroem(landmarks=sp.csr_array(first.landmarks_), random_state=0).fit(X)
    np.testing.assert_array_equal(sparse.transform(X), model.transform(X))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["kmeans", "uniform"])
def test_on_the_landmarks_alone_it_is_the_nystroem_method(method, digits) -> None:
    model = LandmarkNystroem(30, landmarks=method, n_sample=1, random_state=0, **KERNELS["rbf"]).fit(digits)
    C, K = gram(digits, "rbf", model.landmarks_), gram(model.landmarks_, "rbf")
    Z = model.transform(digits)
    np.testing.assert_allclose(Z @ Z.T, C @ np.linalg.solve(K, C.T), atol=1e-8)
    assert model.trace_error_ == pytest.approx(1 - np.sum(Z**2) / len(Z), abs=1e-9)
    assert model.trace_error_ > 0.01


def test_more_own_landmarks_than_rows(digits) -> None:
    with pytest.warns(UserWarning, match="landmarks has 60 rows, but X has 30"):
        Z = LandmarkNystroem(landmarks=digits[:60], **KERNELS["rbf"]).fit_transform(digits[:30])
    np.testing.assert_allclose(Z @ Z.T, gram(digits[:30], "rbf"), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("landmarks", ["kmeans", "uniform"])
def test_the_error_is_that_of_all_rows(landmarks: str) -> None:
    """Neither the landmarks, whose error is 0, nor the rows that W was fitted to count for more than the others."""
    X = np.random.default_rng(0).normal(size=(8000, 8))
    model = LandmarkNystroem(600, landmarks=landmarks, gamma=0.1, n_sample=1000, random_state=0).fit(X)
    Z = model.transform(X)
    assert model.trace_error_ == pytest.approx(1 - np.sum(Z**2) / len(Z), rel=0.1)


@pytest.mark.parametrize("landmarks", ["kmeans", *(pytest.param(m, marks=pytest.mark.slow) for m in _METHODS[1:])])
def test_a_row_near_a_lonely_landmark_has_no_large_coordinates(landmarks) -> None:
    """W is estimated on the landmarks too: |c(x) F|^2 = k(x, x) = 1 at each of them, and nearly so beside them."""
    X = np.random.default_rng(0).uniform(size=(1000, 6))
    model = LandmarkNystroem(100, landmarks=landmarks, gamma=60.0, n_sample=300, random_state=0).fit(X)
    assert np.square(model.transform(X)).sum(axis=1).max() < 1.5


def test_rows_of_zeros_have_no_error() -> None:
    with pytest.warns(UserWarning, match="there are 1 distinct rows"):
        assert LandmarkNystroem(10, kernel="linear").fit(np.zeros((5, 2))).trace_error_ == 0.0


@pytest.mark.slow
def test_checks_make_no_copy_of_the_rows() -> None:
    X = np.random.default_rng(0).standard_normal((100_000, 100), dtype=np.float32)
    model = LandmarkNystroem(10, landmarks="uniform", n_sample=100, gamma=0.01, random_state=0).fit(X[:200])
    assert peak_of(model.fit, X)[1] < X.nbytes / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "poly", "pseudo": "triangle"}, "pseudo='triangle' needs a kernel of distances.*kernel='poly'"),
        ({"kernel": "precomputed"}, r"X must be a square kernel matrix .* got shape \(1797, 64\)"),
        ({"landmarks": np.ones((5, 63))}, "landmarks must have 64 columns, as X has, got 63"),
        ({"landmarks": np.full((5, 64), np.nan)}, "landmarks contains NaN"),
        ({"landmarks": np.full((5, 64), 1e200)}, "landmarks must be at most 1e.150 in magnitude"),
        ({"landmarks": np.ones(64)}, "landmarks must be the name of a method or an array of two dimensions"),
        ({"landmarks": np.empty((0, 64))}, "0 sample"),
        ({"landmarks": np.ones((5, 64)), "kernel": "precomputed"}, "landmarks must be one of"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(options, message, digits) -> None:
    model = LandmarkNystroem(10, random_state=0).fit(digits[:100])
    before = model.landmarks_
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(digits)
    assert model.landmarks_ is before


FUNCTIONS = {"cosine": {}, "chi2": {"gamma": 0.1}, "additive_chi2": {}, "polynomial": {"gamma": 0.1, "degree": 2}}


@pytest.mark.parametrize("kernel", [*FUNCTIONS, "callable"])
def test_scikit_learns_kernels_and_callables(kernel, digits) -> None:
    X, options = digits[:150], FUNCTIONS.get(kernel, {"gamma": 0.1})
    name = (lambda A, B: pairwise_kernels(A, B, metric="chi2", gamma=0.1)) if kernel == "callable" else kernel
    model = LandmarkNystroem(30, kernel=name, n_pseudo_landmarks=10, random_state=0, **options).fit(X)
    coef0 = {"coef0": 0.0} if kernel == "polynomial" else {}
    metric = "chi2" if kernel == "callable" else kernel
    C = pairwise_kernels(X, model.landmarks_, metric=metric, **options, **coef0)
    first, second = model._pseudo["pairs"][0]
    C = np.hstack([C, C[:, first] * C[:, second]])
    np.testing.assert_allclose(model.transform(X), C @ model.factor_, rtol=1e-6, atol=1e-8)
    if kernel != "additive_chi2":  # that one is not positive semidefinite
        assert relative_error(pairwise_kernels(X, metric=metric, **options, **coef0), model.transform(X)) < 0.1


@pytest.mark.filterwarnings("ignore:n_landmarks=")
@pytest.mark.parametrize(("landmarks", "dtype"), [("kmeans", np.float32), ("uniform", np.float64)])
def test_a_kernel_matrix(dtype, landmarks, digits) -> None:
    X = digits[:300]
    K, weights = gram(X[:200], "rbf").astype(dtype), (np.arange(200) % 4 > 0) * 1.0
    model = LandmarkNystroem(20, kernel="precomputed", n_pseudo_landmarks=9, landmarks=landmarks, random_state=0)
    model.fit(K, sample_weight=weights)
    assert len(set(model.landmark_indices_)) == 20
    assert weights[model.landmark_indices_].min() > 0
    K_new = gram(X[200:], "rbf", X[:200]).astype(dtype)
    C = K_new[:, model.landmark_indices_]
    first, second = model._pseudo["pairs"][0]
    expected = np.hstack([C, C[:, first] * C[:, second]]) @ model.factor_
    np.testing.assert_allclose(model.transform(K_new), expected, rtol=1e-4, atol=1e-5)
    assert model.transform(K_new).dtype == dtype
    assert relative_error(K, model.transform(K)) < 0.45
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(K_new), model.transform(K_new))
    few = K[:60, :60].astype(np.float64)
    whole = LandmarkNystroem(300, kernel="precomputed").fit_transform(few)
    np.testing.assert_allclose(whole @ whole.T, few, atol=1e-5)
    with pytest.raises(ValueError, match=r"X must be a square kernel matrix .* got shape \(100, 200\)"):
        model.fit(K_new)


def test_medoids_are_nearest_to_the_centres_of_kernel_kmeans() -> None:
    X, y = make_blobs(300, centers=4, cluster_std=0.3, random_state=1)
    K = pairwise_kernels(X, metric="rbf", gamma=0.1)
    model = LandmarkNystroem(4, kernel="precomputed", random_state=0).fit(K)
    assert sorted(y[model.landmark_indices_]) == [0, 1, 2, 3]
    for i in model.landmark_indices_:
        mine = np.flatnonzero(y == y[i])
        assert mine[np.argmin(K.diagonal()[mine] - 2 * K[np.ix_(mine, mine)].mean(axis=1))] == i


def test_all_of_scikit_learns_kernels_have_a_name_here() -> None:
    assert set(PAIRWISE_KERNEL_FUNCTIONS) <= {*OWN_KERNELS, *FUNCTION_KERNELS}


def test_a_kernel_matrix_of_another_precision_is_mapped_in_that_of_the_fit() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    K = X @ X.T
    model = LandmarkNystroem(8, kernel="precomputed", n_pseudo_landmarks=4, random_state=0).fit(K)
    coordinates = model.transform(K[:5].astype(np.float32))
    assert coordinates.dtype == np.float64
    np.testing.assert_allclose(coordinates, model.transform(K[:5]), atol=1e-4)
