"""The developer's verbs: nox -s lint types test nojit docs bench. Arguments after -- go to the tool."""

import nox

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
    """Strict types, outside the compiled room."""
    session.install("-e", ".[dev]")
    session.run("mypy", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """The tests and the examples in docstrings; add -m slow for the long ones."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def nojit(session: nox.Session) -> None:
    """The same code in the interpreter: what a compiler might hide, such as an index out of bounds, shows here."""
    session.install("-e", ".[test]")
    session.run(
        "python",
        "-m",
        "pytest",
        "tests",
        "-m",
        "not slow and not jit_only",
        *session.posargs,
        env={"NUMBA_DISABLE_JIT": "1"},
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against other libraries; after --, the data sets and options of the script."""
    session.install("-e", ".[bench]")
    session.run("python", "benchmarks/peers/kernel_svm.py", *session.posargs)
