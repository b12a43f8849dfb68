"""Makes links from the pages into the repository work on the site.

The project has no public address that they could lead to. A file that a page links to is shown on a
page of its own below ``repository/``; a folder as the list of what is in it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

#: The part of the site that shows the repository.
PLACE = "repository"
#: Files that are shown: what a reader can read.
SHOWN = {
    ".json": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".py": "python",
    ".toml": "toml",
    ".txt": "text",
    ".yml": "yaml",
}
#: Larger ones are named, and not shown.
MOST_BYTES = 100_000
_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<target>\.\./[^)#\s]*)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for everything in the repository that a page links to."""
    docs = Path(config.docs_dir)
    wanted: set[Path] = set()
    for file in files.documentation_pages():
        if file.src_uri.endswith(".md") and file.abs_src_path:
            wanted.update(path for _, path in _links(docs, file.src_uri, file.content_string))
    for folder in [path for path in wanted if path.is_dir()]:
        wanted.update(child for child in _inside(folder) if _is_shown(child))
    for path in sorted(wanted):
        if path.is_dir() or _is_shown(path):
            text = _page(docs.parent, path)
            made = File.generated(
                config, _address(docs, path), content=text, inclusion=InclusionLevel.NOT_IN_NAV
            )
            files.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links at those pages; any other link out of the pages is left to fail."""
    docs = Path(config.docs_dir)
    here = posixpath.dirname(page.file.src_uri)
    for target, path in set(_links(docs, page.file.src_uri, markdown)):
        if files.get_file_from_path(_address(docs, path)):
            there = posixpath.relpath(_address(docs, path), here or ".")
            markdown = re.sub(rf"(?<=\]\(){re.escape(target)}(?=[)#])", there, markdown)
    return markdown


def _links(docs: Path, page: str, markdown: str) -> Iterator[tuple[str, Path]]:
    """Yield the links out of the pages to what is there: as written, and where they lead."""
    for found in _LINK.finditer(_FENCE.sub("", markdown)):
        target = found["target"]
        path = Path(os.path.normpath(docs / posixpath.dirname(page) / target))
        inside = path.is_relative_to(docs.parent) and not path.is_relative_to(docs)
        if inside and path != docs.parent and path.exists():
            yield target, path


def _address(docs: Path, path: Path) -> str:
    name = path.relative_to(docs.parent).as_posix()
    return f"{PLACE}/{name}/index.md" if path.is_dir() else f"{PLACE}/{name}.md"


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] not in "._" or path.is_file())


def _is_shown(path: Path) -> bool:
    known = path.suffix in SHOWN or path.name == "Makefile"
    return path.is_file() and known and path.stat().st_size <= MOST_BYTES


def _page(root: Path, path: Path) -> str:
    name = path.relative_to(root).as_posix()
    # Sources would crowd out the pages among what a search finds.
    head = f"---\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        return head + "".join(f"- {_entry(child)}\n" for child in _inside(path))
    language = SHOWN.get(path.suffix, "make")
    return f"{head}``````{language}\n{path.read_text(encoding='utf-8')}\n``````\n"


def _entry(path: Path) -> str:
    if _is_shown(path):
        return f"[{path.name}]({path.name}.md)"
    return f"{path.name}/" if path.is_dir() else f"{path.name} ({path.stat().st_size:,} bytes)"
