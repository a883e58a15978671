"""Machines of other programs: files and Python objects that are read, and files that these programs read.

::

    read         read_machine(): which reader a file needs
    write        write_libsvm()
    text_models  of LIBSVM and what has it inside, LIBLINEAR, SVMlight
    opencv       XML and YAML
    fitted       Python objects of scikit-learn, scikit-learn-intelex, ThunderSVM, cuML
    scales       e1071's files of scales
    lines        lines, headers and rows of text models, checked
    machines     what is read: estimators around a kernel expansion
"""

from .read import read_machine
from .write import write_libsvm

__all__ = ["read_machine", "write_libsvm"]
