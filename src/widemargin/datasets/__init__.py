"""Real data: two photographs cut into patches, and readers for the field's file formats.

::

    tables      load_table: a file, a folder or a pattern of any format, as a frame and labels
    layouts     what the columns of a table are, decided on its first rows; what errors say
    columns     cells converted strictly, collected within the memory budget; labels; frames
    rows, arff  rows of text with the numbers of their lines: delimited, JSON lines, spreadsheets; ARFF
    arrow       what pyarrow reads: delimited text with declared types, Parquet, Arrow
    arrays      load_svmlight, load_npz, load_benchmark: NumPy archives, never unpickled; what float32 would round
    files       Dataset; compressed files within a bound; numbers and labels in text; errors with file and line
    patches     load_patches, photo_patches: bundled, offline, deterministic

No reader executes anything that a file contains.
"""

from widemargin.datasets.arrays import load_benchmark, load_npz, load_svmlight
from widemargin.datasets.files import Dataset
from widemargin.datasets.patches import PATCH_CLASSES, PatchGrid, load_patches, photo_patches
from widemargin.datasets.tables import load_table

__all__ = [
    "PATCH_CLASSES",
    "Dataset",
    "PatchGrid",
    "load_benchmark",
    "load_npz",
    "load_patches",
    "load_svmlight",
    "load_table",
    "photo_patches",
]
