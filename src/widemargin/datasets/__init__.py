"""Real data: two photographs cut into patches, and readers for the field's file formats.

::

    files      Dataset, and opening files so that every failure names the file and the line
    svmlight   load_svmlight: "label index:value ..." lines, plain, .gz or .bz2
    tables     load_csv: comma, semicolon or tab, with or without a header
    archives   load_npz, load_benchmark: NumPy archives, never unpickled
    formats    load: picks the reader by the file's suffix
    patches    load_patches, load_photo, photo_patches: bundled, offline, deterministic

No reader executes anything that a file contains.
"""

from widemargin.datasets.archives import load_benchmark, load_npz
from widemargin.datasets.files import Dataset
from widemargin.datasets.formats import load, reader_for
from widemargin.datasets.patches import PatchGrid, load_patches, load_photo, patch_classes, photo_patches
from widemargin.datasets.svmlight import load_svmlight
from widemargin.datasets.tables import load_csv

__all__ = [
    "Dataset",
    "PatchGrid",
    "load",
    "load_benchmark",
    "load_csv",
    "load_npz",
    "load_patches",
    "load_photo",
    "load_svmlight",
    "patch_classes",
    "photo_patches",
    "reader_for",
]
