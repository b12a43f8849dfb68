"""What kind of document a file is, by its name's ending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

KindName = Literal["text", "markdown", "html", "pdf", "code", "data"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a file is read and split.

    Attributes:
        name: ``data`` is text whose lines are its units: JSON, CSV and the like.
        language: The grammar of source code, as tree-sitter-language-pack names it.
    """

    name: KindName
    language: str = ""


#: Data beyond this, in bytes, is no text to be read in passages, but to be queried elsewhere.
DATA_BYTES = 200_000
#: Text that no person wrote, and none reads: drawings, packed code, lists of what is installed.
MADE = (".svg", ".map", ".lock", ".min.js", ".min.css", "-lock.json", "-lock.yaml")
#: The kinds of files that are read, as people are told.
READ = "text, Markdown, HTML, PDF, source code, and data such as JSON, YAML and CSV"

_ENDINGS: dict[KindName, str] = {
    "text": "txt text rst adoc org tex",
    "markdown": "md markdown mdown mkd",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "data": "json jsonl ndjson yaml yml toml csv tsv xml ipynb ini cfg log",
}
LANGUAGES = {
    "bash": "sh bash zsh",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "go": "go",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "kotlin": "kt kts",
    "lua": "lua",
    "php": "php",
    "python": "py pyi",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala sc",
    "sql": "sql",
    "swift": "swift",
    "tsx": "tsx",
    "typescript": "ts mts cts",
}
_BY_ENDING = {end: Kind(name) for name, ends in _ENDINGS.items() for end in ends.split()}
_BY_ENDING |= {
    end: Kind("code", language) for language, ends in LANGUAGES.items() for end in ends.split()
}


def kind_of(source: str) -> Kind | None:
    """Return a file's kind; ``None`` where its ending says nothing."""
    return _BY_ENDING.get(PurePosixPath(source).suffix.removeprefix(".").lower())
