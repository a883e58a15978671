"""Sphinx: Markdown pages, numpydoc docstrings, drawings by matplotlib's plot directive."""

import sys
from functools import partial
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import widemargin

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import pages

project = "widemargin"
author = "widemargin developers"
copyright = "widemargin developers, BSD-3-Clause"
release = version = widemargin.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "drawings"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_math_renderer = "mathml"
smartquotes = False  # a string of code keeps its quotes
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False  # _templates/autosummary/class.rst lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"bsgd_stream",  # a program with an argument, shown in the guide
    "subsection_order": ["../examples/uses", "../examples/fast", "../examples/choose"],
    "within_subsection_order": "ExampleTitleSortKey",
    "remove_config_comments": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("widemargin",),
    "show_memory": False,
    "download_all_examples": False,
    "min_reported_time": 10,
    "image_srcset": ["2x"],
}
plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"savefig.bbox": "tight", "svg.fonttype": "none"}
plot_apply_rcparams = True

html_theme = "pydata_sphinx_theme"
html_title = "widemargin"
html_static_path = ["_static"]
html_css_files = ["widemargin.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "benchmarks": [], "changelog": []}
html_theme_options = {
    "logo": {"text": f"widemargin {release}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navigation_depth": 3,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_footer_items": [],
}


def _is_inherited(app, what, name, obj, skip, options):
    """Leave out scikit-learn's own methods, those that exist to say that there are none, and one for other fits."""
    is_sklearns = (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    return True if is_sklearns or name in ("predict_proba", "predict_log_proba", "train_model") else None


def _write_formula(translator, node, *, display="inline"):
    """Write a formula as MathML, which browsers show without a script and without a network."""
    translator.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _fill_in_tables(app, name, source):
    """Put the tables of results in the places of their markers."""
    source[0] = pages.with_tables(source[0])


def _pages_with_tables(app, env, added, changed, removed):
    """Read these again in every build, as their results may have changed."""
    return [name for name in env.found_docs if "<!-- table " in Path(env.doc2path(name)).read_text(encoding="utf-8")]


def setup(app):
    """Register the handlers."""
    block = partial(_write_formula, display="block")
    app.add_html_math_renderer("mathml", (_write_formula, None), (block, None))
    app.connect("autodoc-skip-member", _is_inherited)
    app.connect("source-read", _fill_in_tables)
    app.connect("env-get-outdated", _pages_with_tables)
