"""Colour patches of the two photographs that scikit-learn ships: real data, offline, up to half a million.

Two tasks: "which photograph is this patch from?" (two classes) and "which photograph, and which quadrant of it?"
(eight). Patches overlap, so a test patch often shares pixels with training patches: the task is to interpolate within
these photographs, not to recognise new ones.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PHOTOS = ("china", "flower")
_PARTS = ("top left", "top right", "bottom left", "bottom right")
#: The classes of each task, in the order of their labels
PATCH_CLASSES = {"photo": _PHOTOS, "quadrant": tuple(f"{photo}, {part}" for photo in _PHOTOS for part in _PARTS)}
_Task = Literal["photo", "quadrant"]


class PatchGrid(NamedTuple):
    """All patches of one photograph on a grid, row by row: ``labels.reshape(shape)`` is a picture of predictions.

    X and y are as of `load_patches`, and the photograph is the `image`, (height, width, 3) uint8.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    shape: tuple[int, int]
    image: NDArray[np.uint8]


def load_patches(
    n_samples: int = 20_000, size: int = 5, *, task: _Task = "photo", random_state: Any = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cut random patches, no two at the same place, out of the two photographs.

    A smaller sample is a prefix of a larger one with the same `random_state`, and the order is random: load the patches
    of training and test together, and slice.

    Parameters
    ----------
    n_samples : int, default=20000
        Number of patches; there are 538,056 of 5 x 5 pixels.
    size : int, default=5
        Width and height of a patch in pixels.
    task : {"photo", "quadrant"}, default="photo"
        Labels: 0 or 1 for the photograph, or 0 to 7 for the photograph and the quadrant that holds the patch's centre:
        those of `PATCH_CLASSES`.
    random_state : int, RandomState instance or None, default=0
        Determines the patches. The same number gives the same ones on every machine.

    Returns
    -------
    X : ndarray of shape (n_samples, size * size * 3), float32
        Pixels row by row, red, green and blue of each, scaled to [0, 1].
    y : ndarray of shape (n_samples,), int64

    Examples
    --------
    >>> X, y = load_patches(1000)
    >>> X.shape, X.dtype, np.bincount(y).tolist()
    ((1000, 75), dtype('float32'), [523, 477])
    """
    from sklearn.utils import check_random_state, check_scalar

    places = len(_PHOTOS), *_places(size)
    n_places = int(np.prod(places))
    check_scalar(n_samples, "n_samples", Integral, min_val=1, max_val=n_places)
    # NumPy keeps RandomState's stream between versions, not Generator's; small samples are prefixes of large ones.
    chosen = check_random_state(random_state).permutation(n_places)[:n_samples]
    photo, row, column = np.unravel_index(chosen, places)
    return _cut(photo, row, column, size, task)


def photo_patches(
    photo: Literal["china", "flower"], size: int = 5, *, task: _Task = "photo", stride: int = 1
) -> PatchGrid:
    """Cut all patches of one photograph, every `stride` pixels, to predict over the whole of it.

    With stride 1 and 5 x 5 pixels, X has 269,028 rows (77 MiB).

    Examples
    --------
    >>> grid = photo_patches("flower", stride=4)
    >>> grid.X.shape, grid.shape
    ((16854, 75), (106, 159))
    """
    from sklearn.utils import check_scalar

    if photo not in _PHOTOS:
        raise ValueError(f"photo must be 'china' or 'flower', not {photo!r}")
    number, places = _PHOTOS.index(photo), _places(size)
    check_scalar(stride, "stride", Integral, min_val=1, max_val=min(places))
    rows, columns = (np.arange(0, n, stride) for n in places)
    row, column = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    X, y = _cut(np.full_like(row, number), row, column, size, task)
    return PatchGrid(X, y, (len(rows), len(columns)), _photos()[number].copy())


@lru_cache(maxsize=1)
def _photos() -> NDArray[np.uint8]:
    """Both photographs: (2, height, width, 3)."""
    from sklearn.datasets import load_sample_images

    if find_spec("PIL") is None:
        raise ImportError("the photographs need the package pillow: pip install pillow")
    return np.stack(load_sample_images().images)


def _places(size: int) -> tuple[int, int]:
    """The number of rows and of columns at which a patch of that size can begin."""
    from sklearn.utils import check_scalar

    _, height, width, _ = _photos().shape
    check_scalar(size, "size", Integral, min_val=1, max_val=min(height, width))
    return height - size + 1, width - size + 1


def _cut(photo: Any, row: Any, column: Any, size: int, task: _Task) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The patches whose photographs and upper left pixels are given, and their labels."""
    if task not in PATCH_CLASSES:
        raise ValueError(f"task must be 'photo' or 'quadrant', not {task!r}")
    _, height, width, _ = _photos().shape
    windows = np.lib.stride_tricks.sliding_window_view(_photos(), (size, size), axis=(1, 2))
    X = windows[photo, row, column].transpose(0, 2, 3, 1).reshape(len(row), -1).astype(np.float32) / np.float32(255)
    if task == "photo":
        return X, photo
    # Twice the centre compared with the height: both integers.
    return X, 4 * photo + 2 * (2 * row + size >= height) + (2 * column + size >= width)
