"""The readers, with every kind of broken file, and the bundled patches."""

import bz2
import gzip
import importlib
import io
import lzma
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from command_line import write
from widemargin import config_context
from widemargin.datasets import files, load_benchmark, load_npz, load_patches, load_svmlight, load_table, photo_patches
from widemargin.datasets.arrays import is_rounded
from widemargin.datasets.tables import format_of


def zipped(members: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


# Patches


@pytest.mark.parametrize("task", ["photo", "quadrant"])
def test_patches_are_the_pixels_at_their_places(task):
    X, y = load_patches(300, 4, task=task, random_state=3)
    assert (X.shape, X.dtype, y.dtype) == ((300, 48), np.float32, np.int64)
    images = [photo_patches(photo).image for photo in ("china", "flower")]
    places = np.random.RandomState(3).permutation(2 * 424 * 637)[:300]  # no two are the same
    for patch, label, number, row, column in zip(X, y, *np.unravel_index(places, (2, 424, 637)), strict=True):
        window = images[number][row : row + 4, column : column + 4]
        np.testing.assert_allclose(patch.reshape(4, 4, 3), window / 255, atol=1e-7)
        lower, right = row + 2 >= 427 / 2, column + 2 >= 320
        assert label == (number if task == "photo" else 4 * number + 2 * lower + right)
    np.testing.assert_array_equal(load_patches(100, 4, random_state=3)[0], X[:100])
    assert (load_patches(854, 1)[0].shape, load_patches(2, 427)[1].shape) == ((854, 3), (2,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: load_patches(0), ValueError, "n_samples == 0, must be >= 1"),
        (lambda: load_patches(600_000), ValueError, "n_samples == 600000, must be <= 538056"),
        (lambda: load_patches(10, 428), ValueError, "size == 428, must be <= 427"),
        (lambda: load_patches(1.5), TypeError, "n_samples must be an instance of int"),
        (lambda: load_patches(10, task="colour"), ValueError, "task must be .* not 'colour'"),
        (lambda: photo_patches("china", stride=0), ValueError, "stride == 0"),
        (lambda: photo_patches("moon"), ValueError, "not 'moon'"),
    ],
)
def test_impossible_patches_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.fixture
def no_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    importlib.import_module("widemargin.datasets.patches")._photos.cache_clear()
    yield
    importlib.import_module("widemargin.datasets.patches")._photos.cache_clear()


@pytest.mark.usefixtures("no_pillow")
def test_without_pillow_the_error_says_what_to_install(program):
    with pytest.raises(ImportError, match=r"need the package pillow: pip install pillow"):
        load_patches(10)
    program.fails("demo --out demo.png --n-samples 100", "the photographs need the package pillow: pip install")
    assert not list(program.folder.iterdir())


def test_grid_covers_the_photograph_with_the_labels_of_load_patches():
    grid = photo_patches("flower", 5, task="quadrant", stride=3)
    assert grid.X.shape == (grid.shape[0] * grid.shape[1], 75)
    assert grid.image.shape == (427, 640, 3)
    pixels = grid.image[2:-2:3, 2:-2:3].reshape(-1, 3)  # in the middle of the patches
    np.testing.assert_allclose(grid.X.reshape(-1, 5, 5, 3)[:, 2, 2], pixels / 255, atol=1e-7)
    labels = grid.y.reshape(grid.shape)
    corners = labels[[0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_array_equal(corners, [4, 5, 6, 7])


# svmlight


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.svm", bytes),
        ("a.svm.GZ", gzip.compress),
        ("a.svm.bz2", bz2.compress),
        ("a.svm.xz", lzma.compress),
        ("a.zip", lambda text: zipped({"a9a": text})),
        ("a9a.t", bytes),
    ],
)
def test_svmlight_plain_and_compressed(tmp_path, name, pack):
    text = b"\xef\xbb\xbf+1 1:0.5 3:2 # a_comment\n\n-1 qid:7 2:-1e-3\r\n1\n"
    data = load_svmlight(write(tmp_path, name, pack(text)))
    assert isinstance(data.X, sp.csr_matrix)  # which libsvm-official and liblinear-official take
    assert data.X.dtype == np.float32
    assert data.X.indices.dtype == np.int32
    np.testing.assert_allclose(data.X.toarray(), [[0.5, 0, 2], [0, -1e-3, 0], [0, 0, 0]], rtol=1e-6)
    assert data.y.tolist() == [1, -1, 1]
    assert data.y.dtype == np.int64
    assert data.X_test is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 1:2 3", "'3' is no pair of a whole index and a finite value"),
        ("1 2:1 1:1", "the feature index 1 follows 2"),
        ("1 0:1", "the feature index 0 is below 1; --zero-based, or zero_based=True, reads files that begin at 0"),
        ("1 -3:1", "the feature index -3 is below 1"),
        ("1 99999999999:1", "does not fit in 32 bits"),
        ("spam 1:1", "the label 'spam' is no number, unlike those above"),
        ("1,2 1:1", "'1,2' is no label"),
        ("1 1:-inf", "the feature index 1 has the value -inf, which must be finite"),
        ("1 1:1_0", "'1:1_0' is no pair"),
        ("1_0 1:1", "the label '1_0' is no number"),
        ("39, State-gov, 77516", "'39,' is no label: is it delimited text? --format csv"),
        ("1 6:1", "the feature index 6 lies beyond the 5 features expected"),
        ("\x00\x01\x02 1:1", r"the label '\x00\x01\x02' is no number"),
        ("x" * 500, "the label '" + "x" * 40 + "...' is no number"),
    ],
)
def test_broken_svmlight_line_is_named(tmp_path, line, reason):
    path = write(tmp_path, "bad.svm", f"1 1:1\n# nothing\n{line}\n1 1:1\n")
    with pytest.raises(ValueError, match=r"bad.svm:3: ") as caught:
        load_svmlight(path, n_features=5)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_index_that_needs_too_much_memory_is_named(tmp_path):
    path = write(tmp_path, "wide.svm", "1 1:1 # 2147483647:1\n1 2:1\n-1 3:1 +02147483647:2\n")
    with config_context(memory_budget="1GB"):
        with pytest.raises(ValueError, match=r"wide.svm:3: the feature index 2147483647 gives X .* set n_features"):
            load_svmlight(path)
        assert load_svmlight(path, n_features=2147483647).X.shape == (3, 2147483647)
        with pytest.raises(ValueError, match="wide.svm:3: the feature index 2147483647 lies beyond the 5 features"):
            load_svmlight(path, n_features=5)
    with config_context(memory_budget="18GB"):
        assert load_svmlight(path).X.nnz == 4
    for content in ("", "\n\n", "# only a comment\n"):
        with pytest.raises(ValueError, match=r"empty.svm: the file has no samples"):
            load_svmlight(write(tmp_path, "empty.svm", content))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("stem", ["a.svm", "a.csv"])
def test_damaged_compression(tmp_path, suffix, pack, stem):
    rng = np.random.default_rng(0)
    lines = "".join(f"1 1:{value}\n" for value in rng.normal(size=3000))
    packed = pack(lines.encode() if stem == "a.svm" else lines.replace(" 1:", ",").encode())
    assert load_table(write(tmp_path, stem + suffix, packed)).X.shape == (3000, 1)
    for damaged in (packed[: len(packed) // 2], b"not compressed at all\n"):
        with pytest.raises(ValueError, match=rf"{stem}{suffix}: truncated or damaged {suffix} file"):
            load_table(write(tmp_path, stem + suffix, damaged))


def test_zip_and_zstandard(tmp_path):
    text = b"1,2\n3,4\n" * 5_000
    whole = pa.compress(text, "zstd", asbytes=True)
    for name, content in (("b.csv.zip", zipped({"b": text + text})), ("a.csv.zst", whole + whole)):
        assert len(load_table(write(tmp_path, name, content)).y) == 20_000
    for name, content, reason in (
        ("a.csv.zip", zipped({"adult.data": text, "adult.names": b"|"}), "must hold one file .* has 'adult.data', 'a"),
        ("c.csv.zip", b"PK\x03\x04", "truncated or damaged .zip file"),
        ("a.csv.zst", whole[: len(whole) // 2], "truncated or damaged .zst file"),
        ("b.csv.zst", whole[:-3], "truncated or damaged .zst file"),
        ("c.csv.zst", b"no zstandard", "truncated or damaged .zst file"),
    ):
        with pytest.raises(ValueError, match=rf"{name}: {reason}"):
            load_table(write(tmp_path, name, content))


def test_svmlight_dtype_is_what_the_columns_need(tmp_path):
    rows = [f"1 1:{k / 7:.6f} 2:{1.6e12 + 1000 * k:.0f} 3:2024\n" for k in range(100)]
    path = write(tmp_path, "a.svm", "".join(rows))
    with pytest.warns(UserWarning, match=r"float32 would round the features 2: read as float64"):
        data = load_svmlight(path)
    assert data.X.dtype == np.float64
    narrow = write(tmp_path, "b.svm", "".join(row.split(" 2:")[0] + "\n" for row in rows))
    assert load_svmlight(narrow).X.dtype == np.float32
    with pytest.warns(UserWarning, match="float64"):
        assert load_svmlight(write(tmp_path, "c.svm", "1 1:1e60\n1 1:2\n")).X.dtype == np.float64
    with pytest.raises(ValueError, match=r"c.svm:1: the feature index 1 has the value 1e.60, .* at most 3.4e.38"):
        load_svmlight(tmp_path / "c.svm", dtype=np.float32)
    assert is_rounded(np.array([np.nan, 1000.0000022, 1000.0000007]))
    assert not is_rounded(np.full(1000, 0.1))  # whose spread is none
    labels = [9007199254740993, 9007199254740992]  # beyond float64
    assert load_svmlight(write(tmp_path, "d.svm", "".join(f"{y} 1:1\n" for y in labels))).y.tolist() == labels


# npz


@pytest.mark.parametrize(("stored", "given"), [("f4", "f4"), ("f8", "f8"), ("u1", "f4"), ("i8", "f8"), ("?", "f4")])
def test_npz_types(tmp_path, stored, given):
    X = np.eye(2, dtype=stored)
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1], X_test=X[:1], y_test=[3])
    data = load_npz(tmp_path / "a.npz")
    assert (data.X.dtype, data.X_test.tolist(), data.y_test.tolist()) == (np.dtype(given), [[1, 0]], [3])
    np.testing.assert_array_equal(data.X, X)


def csr_arrays(dense, **more):
    X = sp.csr_array(dense)
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, **more}


def test_npz_sparse(tmp_path):
    X = np.eye(3, 5, dtype=np.float32)
    np.savez(tmp_path / "a.npz", **csr_arrays(X, y=[1, 2, 3], y_multi=["a", "b", "c"]))
    data = load_npz(tmp_path / "a.npz", target="y_multi")
    assert isinstance(data.X, sp.csr_matrix)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    np.testing.assert_array_equal(data.X.toarray(), X)
    assert data.y.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="there is no key 'z', only: data"):
        load_npz(tmp_path / "a.npz", target="z")
    np.savez(tmp_path / "b.npz", **csr_arrays(X, indptr=sp.csr_array(X).indptr.astype(np.int64)))
    assert load_npz(tmp_path / "b.npz").y is None


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"Z": np.eye(2)}, "neither the key 'X' nor the keys .* only: Z"),
        ({"X": np.eye(2), "y": [1, 2, 3]}, r"y must have the shape \(2,\)"),
        ({"X": np.ones(3), "y": [1, 2, 3]}, "X must have two dimensions"),
        ({"X": np.ones((0, 3)), "y": []}, "at least one row"),
        ({"X": np.array([["a"]]), "y": [1]}, "X must hold numbers"),
        ({"X": np.eye(2), "y": [1, 2], "X_test": np.eye(3)}, "X has 2 features and X_test 3"),
        ({"X": np.array([[{}]], dtype=object), "y": [1]}, "cannot be read .*allow_pickle=False"),
        ({"data": np.ones(2), "indices": [0, 1], "y": [1]}, "keys of the CSR matrix are missing: indptr, shape"),
        (csr_arrays(np.eye(2), indices=[0, 9]), "data, indices, indptr are no CSR matrix"),
        (csr_arrays(np.eye(2), indices=[0, -1]), "data, indices, indptr are no CSR matrix"),
        (csr_arrays(np.eye(2), indptr=[0, 5, 2]), "data, indices, indptr are no CSR matrix"),
        (csr_arrays(np.eye(2), shape=[2]), "data, indices, indptr are no CSR matrix"),
    ],
)
def test_broken_npz(tmp_path, arrays, reason):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=f"bad.npz: .*{reason}"):
        load_npz(tmp_path / "bad.npz")


def test_damaged_npz_and_what_is_none(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(100, 10)), y=np.arange(100))
    content = (tmp_path / "a.npz").read_bytes()
    flipped = content[:2000] + bytes([content[2000] ^ 255]) + content[2001:]
    no_archive, damaged = "not an .npz archive, or a truncated one", "a damaged archive, or"
    pickled = zipped({"X.npy": b"cos\nsystem\n(S'false'\ntR."})
    contents = {content[:5000]: no_archive, b"": no_archive, b"PK\x03\x04": no_archive, flipped: damaged}
    for broken, reason in (contents | {pickled: "X must hold numbers"}).items():
        with pytest.raises(ValueError, match=rf"bad.npz: {reason}"):
            load_npz(write(tmp_path, "bad.npz", broken))
    monkeypatch.setattr(files, "_ALWAYS_EXPANDED", 10**6)
    np.savez_compressed(tmp_path / "b.npz", X=np.zeros((500, 1000)), y=np.zeros(500))
    with pytest.raises(ValueError, match=r"b.npz: expands to more than .*: save it by numpy.savez"):
        load_npz(tmp_path / "b.npz")


# The benchmark folder, and names of files


def test_benchmark_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set the environment variable WIDEMARGIN_DATA"):
        load_benchmark("a9a")
    np.savez(tmp_path / "tiny.npz", X=np.eye(2), y=[0, 1])
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    assert load_benchmark("tiny").y.tolist() == [0, 1]
    with pytest.raises(FileNotFoundError, match="no data set 'a9a'; it has: tiny"):
        load_benchmark("a9a", data_home=tmp_path)


def test_formats_of_names(tmp_path):
    names = ("a9a", "a.b/letter.scale.bz2", "x.CSV", "x.tsv.gz", "x.npz")
    assert list(map(format_of, names)) == ["svmlight", "svmlight", "csv", "csv", "npz"]
    for name in ("a.mat", "a.h5", "a.tar.gz", "a.pkl", "a.sav"):
        with pytest.raises(ValueError, match=rf"{name}: .*(not read|unpack it)"):
            format_of(name)
    for name in ("no.svm", "no.csv", "no.npz", "no.svm.gz", "no.csv.bz2"):
        with pytest.raises(FileNotFoundError):
            load_table(tmp_path / name)
