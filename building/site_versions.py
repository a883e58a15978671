"""Put a built site into the folder of its version, and list all versions for the theme's menu.

::

    WIDEMARGIN_SITE=https://... WIDEMARGIN_SITE_VERSION=v1.2.3 python building/site_versions.py docs/_build/html SITE

The version is a tag, or "dev" for what was not released. SITE/index.html leads to the newest release.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path


def add_version(built: Path, site: Path, address: str, version: str) -> None:
    """Replace the folder of this version; write switcher.json and index.html."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    (site / ".nojekyll").touch()  # folders with an underscore are served too
    released = [path.name for path in site.glob("v*") if re.fullmatch(r"v\d+(\.\d+)*", path.name)]
    released.sort(key=lambda name: [int(part) for part in name[1:].split(".")], reverse=True)
    newest = released[0] if released else "dev"
    versions = [name for name in ("dev", *released) if (site / name).is_dir()]
    entries = [{"version": name, "url": f"{address}/{name}/", "preferred": name == newest} for name in versions]
    (site / "switcher.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={newest}/">\n', encoding="utf-8")


if __name__ == "__main__":
    add_version(
        Path(sys.argv[1]), Path(sys.argv[2]), os.environ["WIDEMARGIN_SITE"], os.environ["WIDEMARGIN_SITE_VERSION"]
    )
