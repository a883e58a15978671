"""Count what a maintainer has to hold in mind, in the working tree or in commits.

::

    python building/counts.py [COMMIT ...]    # a column for each commit; without any, the tracked files as they are
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_COUNTED = {  # name: files, and a pattern that matches once for each
    "lines of src, Python": (r"src/.*\.py", r"\n"),
    "lines of src, C++": (r"src/.*\.[hc]pp", r"\n"),
    "words of Markdown": (r".*\.md", r"\S*\w\S*"),
    "numeric constants of modules": (r"src/.*\.py", r"^_?[A-Z][A-Z\d_]*(?:: [\w[\], ]+)? = [-+*/() \d._e]+(?:#.*)?$"),
    "numeric constants of C++": (r"src/.*\.[hc]pp", r"\bconstexpr\s+[\w:<> ]+\s\w+\s*=\s*-?[\d.]"),
    "sites that catch a stop": (r"src/.*\.py", r"\b(?:except\b|suppress\().*\bStopped"),
    "sites that raise one": (r"src/.*\.py", r"\braise Stopped"),
    "files that name memory_budget": (r"src/.*\.py", r"\A(?s:.)*?memory_budget"),
}
_GENERATED = re.compile(r"^<!-- table [\w/]+ -->\n(?:(?!<!--).*\n)*<!-- end -->$|<!--.*?-->", re.MULTILINE)


def main(commits: list[str]) -> None:
    """Print the table."""
    columns = [counts(texts(commit)) for commit in commits or [""]]
    for name in _COUNTED:
        print(f"{name:30}", *(f"{column[name]:>10,}" for column in columns))


def counts(texts: dict[str, str]) -> dict[str, int]:
    """Return the counts by name."""
    return {
        name: sum(
            len(re.findall(pattern, text, re.MULTILINE)) for path, text in texts.items() if re.fullmatch(of, path)
        )
        for name, (of, pattern) in _COUNTED.items()
    }


def texts(commit: str) -> dict[str, str]:
    """Return the texts of the tracked files by path, Markdown without comments and the tables that a program writes."""
    if commit:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive if _is_counted(member.name)}
    else:
        names = _git("ls-files", "-z").decode().split("\0")
        files = {name: (_ROOT / name).read_bytes() for name in names if _is_counted(name)}
    found = {name: content.decode() for name, content in files.items()}
    return {name: _GENERATED.sub("", text) if name.endswith(".md") else text for name, text in found.items()}


def _is_counted(path: str) -> bool:
    return any(re.fullmatch(of, path) for of, _ in _COUNTED.values())


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, check=True).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
