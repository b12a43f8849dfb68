"""MkDocs hook: makes links from the documentation into the repository work on the site.

The repository has no public address for these links. So each linked file gets a page below
``repository/`` with its text, and each linked folder a page with a list of its contents.
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
SITE_FOLDER = "repository"
#: The language for highlighting, by suffix of the files that get a page.
LANGUAGE_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".py": "python",
    ".toml": "toml",
    ".txt": "text",
    ".yml": "yaml",
}
#: Maximum size of a file with a page. A folder's page names larger files without a link.
MAX_BYTES = 100_000
_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<target>\.\./[^)#\s]*)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each linked file and folder of the repository."""
    docs = Path(config.docs_dir)
    linked: set[Path] = set()
    for file in files.documentation_pages():
        if file.src_uri.endswith(".md") and file.abs_src_path:
            linked.update(path for _, path in _links(docs, file.src_uri, file.content_string))
    for folder in [path for path in linked if path.is_dir()]:
        linked.update(child for child in _contents(folder) if _has_page(child))
    for path in sorted(linked):
        if path.is_dir() or _has_page(path):
            text = _page(docs.parent, path)
            page = File.generated(
                config, _address(docs, path), content=text, inclusion=InclusionLevel.NOT_IN_NAV
            )
            files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the targets of links by the pages that ``on_files`` added.

    A link whose target has no page stays as it is, so that the strict build reports it.
    """
    docs = Path(config.docs_dir)
    folder = posixpath.dirname(page.file.src_uri)
    for target, path in set(_links(docs, page.file.src_uri, markdown)):
        if files.get_file_from_path(_address(docs, path)):
            address = posixpath.relpath(_address(docs, path), folder or ".")
            markdown = re.sub(rf"(?<=\]\(){re.escape(target)}(?=[)#])", address, markdown)
    return markdown


def _links(docs: Path, page: str, markdown: str) -> Iterator[tuple[str, Path]]:
    """Yield the target and the path of each link to an existing file outside the docs folder."""
    for match in _LINK.finditer(_FENCE.sub("", markdown)):
        target = match["target"]
        path = Path(os.path.normpath(docs / posixpath.dirname(page) / target))
        is_outside_docs = path.is_relative_to(docs.parent) and not path.is_relative_to(docs)
        if is_outside_docs and path != docs.parent and path.exists():
            yield target, path


def _address(docs: Path, path: Path) -> str:
    name = path.relative_to(docs.parent).as_posix()
    return f"{SITE_FOLDER}/{name}/index.md" if path.is_dir() else f"{SITE_FOLDER}/{name}.md"


def _contents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] not in "._" or path.is_file())


def _has_page(path: Path) -> bool:
    is_text = path.suffix in LANGUAGE_BY_SUFFIX or path.name == "Makefile"
    return path.is_file() and is_text and path.stat().st_size <= MAX_BYTES


def _page(root: Path, path: Path) -> str:
    """Return the page of a file or folder, as Markdown."""
    name = path.relative_to(root).as_posix()
    # The search excludes these pages, because they would hide the documentation.
    head = f"---\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        return head + "".join(f"- {_entry(child)}\n" for child in _contents(path))
    language = LANGUAGE_BY_SUFFIX.get(path.suffix, "make")
    return f"{head}``````{language}\n{path.read_text(encoding='utf-8')}\n``````\n"


def _entry(path: Path) -> str:
    if _has_page(path):
        return f"[{path.name}]({path.name}.md)"
    return f"{path.name}/" if path.is_dir() else f"{path.name} ({path.stat().st_size:,} bytes)"
