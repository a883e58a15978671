"""Commands of development: nox -s with the sessions below; after --, arguments to them."""

from pathlib import Path

import nox

NIGHTLY = "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple"
NEIGHBOURS = [
    *("dlib-bin", "liblinear-official", "libsvm-official", "opencv-python-headless<5", "python-weka-wrapper3"),
    *("scikit-learn-intelex", "thundersvm-cpu"),
    *(
        "aeon",
        "cleanlab",
        "crepes",
        "fairlearn",
        "feature-engine",
        "imbalanced-learn",
        "lime",
        "mapie",
        "mlflow",
        "mlxtend",
    ),
    *("onnx2torch", "openvino", "optuna", "polars", "pyarrow", "pyod", "river", "shap"),
    *("skrub", "sktime", "tract"),
]
FAST = [f"tests/{name}" for name in ("data", "kernels", "models", "nystroem", "partition", "solvers")]

COMPILED = ["-m", "not neighbours", "-k", "not thousand_interrupts", "tests/native"]  # that one takes minutes there

nox.options.sessions = ["lint", "types", "test"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, and the direction of imports."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types, with stubs of the compiled modules as they are built here."""
    session.install("-e", ".[dev]")
    session.run("python", "building/stubs.py")
    session.run("mypy", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """The tests and the examples in docstrings, on all cores; add -m slow for the long ones."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def fast(session: nox.Session) -> None:
    """The tests of the packages from `models` down, on all cores; add tests/native for those of compiled code."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *FAST, *session.posargs)


@nox.session
def evidence(session: nox.Session) -> None:
    """The tests of the papers' experiments and of the rivals written for them."""
    session.install("-e", ".[bench,test]")
    session.run("python", "-m", "pytest", "tests/project", "evidence/tests", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The tests with the lowest versions that pyproject.toml allows."""
    constraints = Path(session.create_tmp()) / "lowest.txt"
    constraints.write_text(str(session.run("python", "building/lowest.py", silent=True)))
    session.install("-c", str(constraints), "-e", ".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """The tests, slow ones too, with the development versions of scikit-learn, NumPy and SciPy."""
    session.install("-e", ".[test]")
    session.install("--upgrade", "--pre", "--index-url", NIGHTLY, "scikit-learn", "numpy", "scipy", "--no-deps")
    session.run("python", "-m", "pytest", "-m", "not neighbours", *session.posargs)


@nox.session
def neighbours(session: nox.Session) -> None:
    """Other libraries with our estimators.

    Some need their programs too: apt-get install default-jre-headless libocas-tools libsvm-tools nodejs otb-bin
    r-cran-e1071 r-cran-kernlab, and npm install libsvm-js where NODE_PATH says.
    """
    session.install("-e", ".[test]", *NEIGHBOURS)
    session.run("python", "-m", "pytest", "-m", "neighbours", "tests/neighbours", *session.posargs)
    session.install("opencv-contrib-python-headless>=5")  # its dnn is another one than that of 4
    session.run("python", "-m", "pytest", "-m", "neighbours", "tests/neighbours", "-k", "opencv or OpenCV")


@nox.session
def checked(session: nox.Session) -> None:
    """The tests of compiled code on a build with checked spans, AddressSanitizer and UBSan."""
    session.install(".[test]", "-Ccmake.define.WIDEMARGIN_CHECKED=ON", "-Cinstall.strip=false")
    runtimes = [
        str(session.run("c++", f"-print-file-name={name}", external=True, silent=True)).strip()
        for name in ("libasan.so", "libstdc++.so")  # the first catches C++ exceptions only if the second is loaded
    ]
    env = {"LD_PRELOAD": " ".join(runtimes), "ASAN_OPTIONS": "detect_leaks=0"}
    session.run("python", "-m", "pytest", *COMPILED, *session.posargs, env=env)


@nox.session
def wheel(session: nox.Session) -> None:
    """A wheel with all processor levels, into dist/, and auditwheel's report on it."""
    session.install("auditwheel")
    session.run("pip", "wheel", "--no-deps", "-Ccmake.define.WIDEMARGIN_LEVELS=all", "-w", "dist", ".")
    session.run("sh", "-c", "auditwheel show dist/*.whl", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html, and check its links; without the gallery's runs: -- -D plot_gallery=0."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html", *session.posargs)
    session.run("python", "building/check_links.py", "docs/_build/html")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against other libraries; after --, the data sets and options of the script."""
    session.install("-e", ".[bench]")
    session.run("python", "benchmarks/all.py", "kernel_svm", *(session.posargs or ("--sets", "patches")))
