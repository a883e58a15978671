"""Colour patches of the two photographs that scikit-learn ships: real data, offline, up to half a million.

Two tasks: "which photograph is this patch from?" (two classes) and "which photograph, and which quadrant of it?"
(eight). Patches overlap, so a test patch often shares pixels with training patches: the task is to interpolate within
these photographs, not to recognise new ones.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PHOTOS = ("china", "flower")
_QUADRANTS = ("top left", "top right", "bottom left", "bottom right")
_Task = Literal["photo", "quadrant"]


class PatchGrid(NamedTuple):
    """All patches of one photograph on a regular grid.

    Attributes
    ----------
    X, y : ndarray of shape (n_rows * n_columns, size * size * 3), float32, and (n_rows * n_columns,), int64
        The patches and their labels, as of `load_patches`, in the order of the grid's rows.
    shape : tuple (n_rows, n_columns)
        The grid: ``labels.reshape(shape)`` is a picture of the predictions.
    image : ndarray of shape (height, width, 3), uint8
        The photograph.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    shape: tuple[int, int]
    image: NDArray[np.uint8]


def load_patches(
    n_samples: int = 20_000,
    size: int = 5,
    *,
    task: _Task = "photo",
    random_state: Any = 0,
    return_coordinates: bool = False,
) -> tuple[NDArray[Any], ...]:
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
        Labels: 0 or 1 for the photograph, or 0 to 7 for the photograph and the quadrant that holds the patch's centre.
        `patch_classes` names them.
    random_state : int, RandomState instance or None, default=0
        Determines the patches. The same number gives the same ones on every machine.
    return_coordinates : bool, default=False
        Whether to return their places as well.

    Returns
    -------
    X : ndarray of shape (n_samples, size * size * 3), float32
        Pixels row by row, red, green and blue of each, scaled to [0, 1].
    y : ndarray of shape (n_samples,), int64
    coordinates : ndarray of shape (n_samples, 3), int64
        Photograph, row and column of the upper left pixel. Only with `return_coordinates`.

    Examples
    --------
    >>> X, y = load_patches(1000)
    >>> X.shape, X.dtype, np.bincount(y).tolist()
    ((1000, 75), dtype('float32'), [523, 477])
    """
    from sklearn.utils import check_random_state

    photos = _photos()
    n_rows, n_columns = _places(photos[0], size)
    n_places = len(photos) * n_rows * n_columns
    _check_count("n_samples", n_samples, n_places, f"there are {n_places} patches of {size} x {size} pixels")
    _check_task(task)
    # NumPy keeps RandomState's stream between versions, not Generator's; small samples are prefixes of large ones.
    chosen = check_random_state(random_state).permutation(n_places)[:n_samples]
    coordinates = np.stack(np.unravel_index(chosen, (len(photos), n_rows, n_columns)), axis=1)
    X = np.empty((n_samples, size * size * 3), dtype=np.float32)
    for number, photo in enumerate(photos):
        mine = coordinates[:, 0] == number
        X[mine] = _cut(photo, size, coordinates[mine, 1], coordinates[mine, 2])
    y = _label(coordinates, photos[0].shape, size, task)
    return (X, y, coordinates) if return_coordinates else (X, y)


def patch_classes(task: _Task = "photo") -> tuple[str, ...]:
    """Name the classes of `load_patches`, in the order of their labels.

    Examples
    --------
    >>> patch_classes("quadrant")[5]
    'flower, top right'
    """
    _check_task(task)
    return _PHOTOS if task == "photo" else tuple(f"{photo}, {part}" for photo in _PHOTOS for part in _QUADRANTS)


def load_photo(photo: Literal["china", "flower"]) -> NDArray[np.uint8]:
    """Load one of the two photographs, an ndarray of shape (427, 640, 3), uint8."""
    if photo not in _PHOTOS:
        raise ValueError(f"photo must be 'china' or 'flower', not {photo!r}")
    return _photos()[_PHOTOS.index(photo)].copy()


def photo_patches(
    photo: Literal["china", "flower"], size: int = 5, *, task: _Task = "photo", stride: int = 1
) -> PatchGrid:
    """Cut all patches of one photograph, every `stride` pixels, to predict over the whole of it.

    Parameters
    ----------
    photo : {"china", "flower"}
        The photograph.
    size, task
        As in `load_patches`.
    stride : int, default=1
        Distance between neighbouring patches in pixels.

    Returns
    -------
    PatchGrid
        With stride 1 and 5 x 5 pixels, X has 269,028 rows (77 MiB).

    Examples
    --------
    >>> grid = photo_patches("flower", stride=4)
    >>> grid.X.shape, grid.shape
    ((16854, 75), (106, 159))
    """
    image = load_photo(photo)
    _check_task(task)
    n_rows, n_columns = _places(image, size)
    _check_count("stride", stride, min(n_rows, n_columns), f"a row has {min(n_rows, n_columns)} patches")
    rows, columns = np.arange(0, n_rows, stride), np.arange(0, n_columns, stride)
    places = np.stack(np.meshgrid([_PHOTOS.index(photo)], rows, columns, indexing="ij"), axis=-1).reshape(-1, 3)
    return PatchGrid(
        X=_cut(image, size, places[:, 1], places[:, 2]),
        y=_label(places, image.shape, size, task),
        shape=(len(rows), len(columns)),
        image=image,
    )


@lru_cache(maxsize=1)
def _photos() -> tuple[NDArray[np.uint8], ...]:
    from sklearn.datasets import load_sample_images

    if find_spec("PIL") is None:
        raise ImportError("the photographs need the package pillow: pip install widemargin[demo], or pillow")
    return tuple(load_sample_images().images)


def _places(image: NDArray[np.uint8], size: int) -> tuple[int, int]:
    """Count the rows and columns at which a patch of that size can begin."""
    height, width = image.shape[:2]
    _check_count("size", size, min(height, width), f"the photographs have {height} x {width} pixels")
    return height - size + 1, width - size + 1


def _cut(
    image: NDArray[np.uint8], size: int, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Cut the patches whose upper left pixels are given: (n, size * size * 3) float32 in [0, 1]."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(0, 1))
    patches = windows[rows, columns].transpose(0, 2, 3, 1).reshape(len(rows), -1)
    return patches.astype(np.float32) / np.float32(255)


def _label(coordinates: NDArray[np.int64], shape: tuple[int, ...], size: int, task: _Task) -> NDArray[np.int64]:
    photo, row, column = coordinates.T
    if task == "photo":
        return np.array(photo)
    height, width = shape[:2]
    # Twice the centre compared with the height: both integers.
    return np.asarray(4 * photo + 2 * (2 * row + size >= height) + (2 * column + size >= width))


def _check_count(name: str, value: Any, most: int, why: str) -> None:
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not 1 <= value <= most:
        raise ValueError(f"{name}={value} must lie between 1 and {most}: {why}")


def _check_task(task: str) -> None:
    if task not in ("photo", "quadrant"):
        raise ValueError(f"task must be 'photo' or 'quadrant', not {task!r}")
