"""The plain way beside a search: the chunks of those symbols that the question names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from casewright.stores import Case

_FILE = re.compile(r"[\w./-]+\.py\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


class SymbolFilter:
    """Chunks of code by their symbols.

    A symbol is named by a question that has its last part as a word, spelled alike. Of those that
    are named, the ones count of which most parts are: ``Client.send`` before another class's
    ``send`` where the question says "Client". Where it names a file, only that file's count.

    Args:
        cases: Chunks of code, as ``ingest`` makes them.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._chunks: defaultdict[str, list[Case]] = defaultdict(list)
        for case in cases:
            if symbol := str(case.metadata.get("symbol", "")):
                self._chunks[symbol].append(case)
        self._named: defaultdict[str, list[str]] = defaultdict(list)
        for symbol in self._chunks:
            self._named[symbol.rpartition(".")[2]].append(symbol)

    def find(self, question: str) -> list[str]:
        """Return the ids of the chunks, ordered by file and place; none where none is named."""
        files = set(_FILE.findall(question))
        words = set(_NAME.findall(_FILE.sub(" ", question)))
        found = [
            (sum(part in words for part in symbol.split(".")), case)
            for word in words
            for symbol in self._named.get(word, ())
            for case in self._chunks[symbol]
        ]
        if within := [(n, case) for n, case in found if case.metadata["source"] in files]:
            found = within
        most = max((count for count, _ in found), default=0)
        best = [case for count, case in found if count == most]
        best.sort(key=lambda case: (case.metadata["source"], case.metadata["position"]))
        return [case.id for case in best]
