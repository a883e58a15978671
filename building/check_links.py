"""Check the built site: every link to another file of it leads to a file, and every fragment to an element.

::

    python building/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of an HTML file, and the names of its elements."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, and what it is called."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere; links to other hosts are not followed."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # the theme's templates
    pages = {path.resolve(): Page(path) for path in files}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            is_elsewhere = parts.scheme or parts.netloc
            has_name = target not in pages or parts.fragment in ("", *pages[target].names)
            if not is_elsewhere and not (target.exists() and has_name):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found) or "all links lead somewhere")
    sys.exit(bool(found))
