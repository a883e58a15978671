"""Sphinx: Markdown pages, numpydoc docstrings."""

import widemargin

project = "widemargin"
author = "widemargin developers"
release = version = widemargin.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to files outside docs/; tests/test_docs.py checks all links
