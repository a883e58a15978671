"""What an archive says of the public repository: the project's addresses, and README.md with absolute links.

A package index shows README.md without the files beside it. The repository's address is that of the workflow which
builds a release, in the environment variable WIDEMARGIN_REPOSITORY; without it README.md is taken as it is, and no
address is named.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_README = Path(__file__).parents[1] / "README.md"
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)]+)\)")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """The fields ``readme`` and ``urls``; `project` has the version."""
    repository = os.environ.get("WIDEMARGIN_REPOSITORY", "").rstrip("/")
    text = _README.read_text(encoding="utf-8")
    if not repository:
        return {"readme": {"text": text, "content-type": "text/markdown"}}
    tag = f"v{project['version']}"
    urls = {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
    }
    return {"readme": {"text": absolute(text, repository, tag), "content-type": "text/markdown"}, "urls": urls}


def absolute(text: str, repository: str, tag: str) -> str:
    """The Markdown text with absolute links in place of relative ones: of pictures to the file, else to its page."""
    return _LINK.sub(lambda m: f"{m[1]}{m[2]}({repository}/{'raw' if m[1] else 'blob'}/{tag}/{m[3]})", text)
