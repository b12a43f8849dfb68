"""Checks a built site: ``python docs/_site/check.py SITE``.

A page must not load anything from another host. Every link inside the site must lead to an existing
file, and to an existing anchor. Links to other hosts are not followed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: The attribute whose address a browser loads without a click, by element.
_FETCHED_ATTRIBUTE = {
    **dict.fromkeys(("script", "img", "iframe", "embed", "source", "audio", "video"), "src"),
    "object": "data",
}
#: Relations of ``<link>`` whose address a browser does not load.
_NOT_FETCHED = {"canonical", "next", "prev", "alternate", "edit"}
_OTHER_HOST = re.compile(r"(?:https?:)?//", flags=re.IGNORECASE)
#: Addresses on other hosts that a style sheet and a script load.
_CSS = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)")
_SCRIPT = re.compile(r"(?:import\s*\(|from|\.src\s*=|fetch\s*\()\s*[\"'`](https?://[^\"'`]+)")
#: Attributes for which the theme loads a script: Mermaid from its host, a repository from GitHub.
_THEME_FETCHES = {"class": "mermaid", "data-md-component": "source"}
# If root runs LinkChecker, it becomes the user "nobody", who cannot read the site or the modules.
_LINKCHECKER = (
    "from linkcheck.command import linkchecker as command; "
    "command.drop_privileges = lambda: None; command.linkchecker()"
)


@dataclass
class _Page(HTMLParser):
    """Parser that collects the addresses and anchors of a page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    element: str = ""  # the element that was opened last

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element's addresses and anchors."""
        values = {name: value or "" for name, value in attrs}
        self.element = tag
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and not _NOT_FETCHED & set(values.get("rel", "").split()):
            self.fetched.append(values.get("href", ""))
        if tag in _FETCHED_ATTRIBUTE and _FETCHED_ATTRIBUTE[tag] in values:
            self.fetched.append(values[_FETCHED_ATTRIBUTE[tag]])
        self.fetched += [part.split()[0] for part in values.get("srcset", "").split(",") if part]
        self.fetched += _addresses(_CSS, values.get("style", ""))
        for name, value in _THEME_FETCHES.items():
            if value in values.get(name, "").split():
                self.fetched.append(f"https://… for {name}={value!r}")

    def handle_data(self, data: str) -> None:
        """Collect the addresses that inline styles and scripts load."""
        if self.element in ("style", "script"):
            self.fetched += _addresses(_CSS if self.element == "style" else _SCRIPT, data)


def _addresses(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the first group with a text from each match of a pattern."""
    return [next(filter(None, match.groups())) for match in pattern.finditer(text)]


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each wrong address in a site."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        page = pages[file] = _Page()
        page.feed(file.read_text(encoding="utf-8"))
    if not pages:
        yield f"{site}: no pages"
    for file in sorted(site.rglob("*.css")):
        for address in _addresses(_CSS, file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)} fetches {address}"
    for file, page in pages.items():
        name = file.relative_to(site)
        external = filter(_OTHER_HOST.match, page.fetched)
        yield from (f"{name} fetches {address}" for address in external)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = _target(site, file, unquote(parts.path))
            anchor = unquote(parts.fragment)
            if not target.is_file() or not target.is_relative_to(site):
                yield f"{name} links to {link}: no such file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {link}: no such anchor"


def _target(site: Path, file: Path, path: str) -> Path:
    if not path:
        return file
    # The 404 page is shown at any depth, so its addresses begin at the root of the site.
    return (site / path[1:] if path[0] == "/" else file.parent / path).resolve()


def linkchecker(site: Path) -> str:
    """Return LinkChecker's report about missing files; empty if there are none."""
    # The plugin for anchors is not used: it reads a page again for every link to an anchor.
    options = ("--no-status", "--threads", "0")
    command = [sys.executable, "-c", _LINKCHECKER, *options, str(site / "index.html")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """Check the site in the folder of the first argument; return the exit status."""
    site = Path(sys.argv[1]).resolve()
    report = "\n".join(faults(site)) or linkchecker(site)
    if report:
        print(report, file=sys.stderr)
        return 1
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages: every link and anchor leads somewhere, and no other host is used.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
