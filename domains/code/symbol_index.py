"""An index of the symbols of a source tree's store, by name and by enclosing definition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from casewright.stores import CaseStore
from casewright.stores.documents.cases import root_names


class SymbolIndex:
    """An index of symbols and of the definitions that enclose them.

    ``Splitter.split`` implies ``Splitter``. So a class can be found by name even if its first lines
    share a chunk with its first method.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        #: Each symbol or enclosing definition, mapped to the names that it joins.
        self.paths: dict[str, tuple[str, ...]] = {}
        self._members: defaultdict[str, list[str]] = defaultdict(list)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._by_folded_name: defaultdict[str, list[str]] = defaultdict(list)
        self._by_pair: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for symbol in dict.fromkeys(symbols):
            parts = tuple(symbol.split("."))
            path = symbol
            for length in range(len(parts), 0, -1):
                if path not in self.paths:
                    self._add(path, parts[:length])
                self._members[path].append(symbol)
                path = path.rpartition(".")[0]
        self._owners = {owner for owner, _ in self._by_pair}

    def _add(self, path: str, parts: tuple[str, ...]) -> None:
        self.paths[path] = parts
        if name := parts[-1]:
            self._by_name[name].append(path)
            self._by_folded_name[name.casefold()].append(path)
            if len(parts) > 1:
                self._by_pair[parts[-2].casefold(), name.casefold()].append(path)

    def members(self, path: str) -> list[str]:
        """Return the symbols of a path: the path itself, and the symbols defined in it."""
        return self._members.get(path, [])

    def has_exact(self, name: str) -> bool:
        """Return ``True`` if a path ends with this name, in the same case."""
        return name in self._by_name

    def contains_definitions(self, name: str) -> bool:
        """Return ``True`` if a definition with this name, in any case, contains others."""
        return name.casefold() in self._owners

    def paths_ending_in(self, name: str) -> list[str]:
        """Return the paths with this last name; if there are none, ignore the case."""
        return self._by_name.get(name) or self._by_folded_name.get(name.casefold(), [])

    def paths_inside(self, owner: Sequence[str], name: str, *, strict: bool) -> list[str]:
        """Return the paths with this last name in the owner.

        ``owner`` is the name of the enclosing definition, optionally after names that enclose it.
        If no path matches in the owner's case, the case is ignored, unless ``strict``.
        """
        paths = self._by_pair.get((owner[-1].casefold(), name.casefold()), [])
        if name in self._by_name:
            paths = [path for path in paths if self.paths[path][-1] == name]
        exact = [path for path in paths if common_end(self.paths[path][:-1], owner)]
        if exact or strict:
            return exact
        folded = _casefold(owner)
        return [path for path in paths if common_end(_casefold(self.paths[path][:-1]), folded)]

    def paths_of_joined(self, parts: Sequence[str]) -> list[str]:
        """Return the paths that share the longest end with joined names, module names included."""
        top_level = [parts[-1]] if len(self.paths.get(parts[-1], ())) == 1 else []
        owned = self._by_pair.get((parts[-2].casefold(), parts[-1].casefold()), [])
        lengths = {path: common_end(self.paths[path], parts) for path in (*owned, *top_level)}
        longest = max(lengths.values(), default=0)
        return [path for path, length in lengths.items() if length == longest > 0]


def common_end(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the shorter sequence if the longer one ends with it, else 0."""
    size = min(len(first), len(second))
    return size if tuple(first[len(first) - size :]) == tuple(second[len(second) - size :]) else 0


def _casefold(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


class CodeIndex(NamedTuple):
    """The symbols of a store, and the names of its roots (see ``root_names``)."""

    symbols: SymbolIndex
    roots: Mapping[str, str]

    @classmethod
    def of(cls, store: CaseStore) -> CodeIndex:
        """Return the index of a whole store; raise ``StoreError`` if the store cannot be read."""
        values: dict[str, set[str]] = {"symbol": set(), "root": set()}
        for case in store.all():
            for field, texts in values.items():
                value = case.metadata.get(field)
                if isinstance(value, str) and value:
                    texts.add(value)
        return cls(SymbolIndex(sorted(values["symbol"])), root_names(sorted(values["root"])))
