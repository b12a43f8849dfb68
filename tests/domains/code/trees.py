"""A small source tree in two languages, with definitions that are longer than a chunk."""

from __future__ import annotations

from pathlib import Path

from tests.stores.document_files import write


def body(words: str, indent: str, end: str = "") -> str:
    """Return different statements, enough for three chunks."""
    return "\n".join(
        f"{indent}{word}_{number} = {word}_{number + 1}(given, {number}){end}"
        for word in words.split()
        for number in range(14)
    )


FILES = {
    "text/splitter.py": (
        '"""Splits texts."""\n\n\nclass Splitter:\n    """Cuts long texts into passages."""\n\n'
        "    def __init__(self, size):\n        self.size = size\n        self.cuts = []\n\n"
        f"    def split(self, given):\n{body('alpha bravo charlie', ' ' * 8)}\n"
        "        return charlie_1\n\n\n"
        "class Lines:\n    def split(self, given):\n        rows = given.splitlines()\n"
        "        return rows\n\n\n"
        f"def grouped(given):\n{body('delta echo', ' ' * 4)}\n    return echo_1\n"
    ),
    "web/store.ts": (
        "export class Store {\n"
        f"  add(given: string): string {{\n{body('const fetch', ' ' * 4, ';')}\n"
        "    return given;\n  }\n\n"
        "  // A failed request is sent again after a pause, three times at most.\n"
        "  retry(request: Request): Response {\n"
        "    for (let attempt = 0; attempt < 3; attempt++) {\n"
        "      const response = send(request);\n"
        "      if (response.ok) return response;\n      pause(attempt);\n    }\n"
        '    throw new Error("no answer");\n  }\n}\n'
    ),
    "readme.md": "# Splitter\n\nThe split method of class Splitter is described here.\n",
    ".hidden/secret.py": "def hidden(given):\n    return given\n",
    "node_modules/lib/index.js": "function vendored(given) {\n  return given;\n}\n",
}


def source_tree(folder: Path) -> Path:
    """Write the tree into a folder, and return the folder."""
    return write(folder, FILES)
