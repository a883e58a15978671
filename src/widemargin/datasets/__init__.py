"""Real data: two photographs cut into patches, and readers for the field's file formats.

::

    files       Dataset; labels as numbers or text; errors that name the file and the line
    compressed  opening files, compressed ones without expanding them beyond a bound
    precision   float32 or float64, as the columns of a text file need
    svmlight    load_svmlight: "label index:value ..." lines
    tables      load_csv, load_arff: numbers and text, with missing values or without
    layouts     what the columns of a table are: label, features, left out
    delimited   the rows of a table, each with the number of its line
    archives    load_npz, load_benchmark: NumPy archives, never unpickled
    formats     load: picks the reader by the file's suffix
    patches     load_patches, load_photo, photo_patches: bundled, offline, deterministic

No reader executes anything that a file contains.
"""

from widemargin.datasets.archives import load_benchmark, load_npz
from widemargin.datasets.files import Dataset
from widemargin.datasets.formats import load, reader_for
from widemargin.datasets.patches import PatchGrid, load_patches, load_photo, patch_classes, photo_patches
from widemargin.datasets.svmlight import load_svmlight
from widemargin.datasets.tables import load_arff, load_csv

__all__ = [
    "Dataset",
    "PatchGrid",
    "load",
    "load_arff",
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
