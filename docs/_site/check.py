"""Checks a built site: ``python docs/_site/check.py SITE``.

No page may have a browser fetch anything from another host; every link inside the site leads to a
file that is there, and to an anchor that is there. Links to other hosts are not followed.
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

#: Attributes whose address a browser fetches by itself.
_FETCHED = {
    **dict.fromkeys(("script", "img", "iframe", "embed", "source", "audio", "video"), "src"),
    "object": "data",
}
#: Kinds of ``<link>`` that name a page, and fetch nothing.
_NAMED = {"canonical", "next", "prev", "alternate", "edit"}
_ELSEWHERE = re.compile(r"(?:https?:)?//", flags=re.IGNORECASE)
_CSS = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)")
_SCRIPT = re.compile(r"(?:import\s*\(|from|\.src\s*=|fetch\s*\()\s*[\"'`](https?://[^\"'`]+)")
# The theme fetches Mermaid for such a diagram, and asks GitHub about such a repository.
_FETCHING = {"class": "mermaid", "data-md-component": "source"}
# Run by root, LinkChecker becomes the user nobody, who may not read the site, nor its modules.
_LINKCHECKER = (
    "from linkcheck.command import linkchecker as it; "
    "it.drop_privileges = lambda: None; it.linkchecker()"
)


@dataclass
class _Page(HTMLParser):
    """What a page holds that is checked."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    within: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element's addresses."""
        has = {name: value or "" for name, value in attrs}
        self.within = tag
        self.anchors.update(has[name] for name in ("id", "name") if name in has)
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag == "link" and not _NAMED & set(has.get("rel", "").split()):
            self.fetched.append(has.get("href", ""))
        if tag in _FETCHED and _FETCHED[tag] in has:
            self.fetched.append(has[_FETCHED[tag]])
        self.fetched += [part.split()[0] for part in has.get("srcset", "").split(",") if part]
        self.fetched += _addresses(_CSS, has.get("style", ""))
        for name, value in _FETCHING.items():
            if value in has.get(name, "").split():
                self.fetched.append(f"https://… for {name}={value!r}")

    def handle_data(self, data: str) -> None:
        """Keep the addresses that a page's own styles and scripts fetch."""
        if self.within in ("style", "script"):
            self.fetched += _addresses(_CSS if self.within == "style" else _SCRIPT, data)


def _addresses(pattern: re.Pattern[str], text: str) -> list[str]:
    return [next(filter(None, found)) for found in map(re.Match.groups, pattern.finditer(text))]


def faults(site: Path) -> Iterator[str]:
    """Yield what is wrong with the addresses of a site, one line each."""
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
        yield from (f"{name} fetches {one}" for one in page.fetched if _ELSEWHERE.match(one))
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
    # The page for what is not there is shown at any depth, and names all from the top.
    return (site / path[1:] if path[0] == "/" else file.parent / path).resolve()


def linkchecker(site: Path) -> str:
    """Return what LinkChecker says about the files that are linked; nothing where all are there."""
    # Without its plugin for anchors, which reads a page once for every link to a part of it.
    options = ("--no-status", "--threads", "0")
    command = [sys.executable, "-c", _LINKCHECKER, *options, str(site / "index.html")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """Check the site that the command names."""
    site = Path(sys.argv[1]).resolve()
    found = "\n".join(faults(site)) or linkchecker(site)
    if found:
        print(found, file=sys.stderr)
        return 1
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages: every link and anchor leads somewhere, and nothing is of another host.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
