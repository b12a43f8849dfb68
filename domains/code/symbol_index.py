"""An index of the symbols of a source tree's store, by name and by enclosing definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from casewright.stores import CaseStore
from casewright.stores.documents.cases import root_names


class SymbolIndex:
    """An index of symbols and enclosing definitions: ``Splitter.split`` implies ``Splitter``.

    So a class can be found by name even if its head shares a chunk with its first method.

    Attributes:
        paths: Each symbol or enclosing definition, mapped to its names.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self.paths: dict[str, tuple[str, ...]] = {}
        self._members: dict[str, list[str]] = {}
        self._exact: dict[str, list[str]] = {}
        self._folded: dict[str, list[str]] = {}
        self._inside: dict[tuple[str, str], list[str]] = {}
        for symbol in dict.fromkeys(symbols):
            parts = tuple(symbol.split("."))
            path = symbol
            for size in range(len(parts), 0, -1):
                if path not in self.paths:
                    self._add(path, parts[:size])
                self._members[path].append(symbol)
                path = path.rpartition(".")[0]
        self._owners = {owner for owner, _ in self._inside}

    def _add(self, path: str, parts: tuple[str, ...]) -> None:
        self.paths[path] = parts
        self._members[path] = []
        name = parts[-1]
        if not name:
            return
        self._exact.setdefault(name, []).append(path)
        self._folded.setdefault(name.casefold(), []).append(path)
        if len(parts) > 1:
            pair = parts[-2].casefold(), name.casefold()
            self._inside.setdefault(pair, []).append(path)

    def members(self, path: str) -> list[str]:
        """Return the symbols of a path: the path itself, and the symbols defined in it."""
        return self._members.get(path, [])

    def exactly(self, name: str) -> bool:
        """Return ``True`` if a path ends with this name, in the same case."""
        return name in self._exact

    def owns(self, name: str) -> bool:
        """Return ``True`` if a definition with this name, in any case, contains others."""
        return name.casefold() in self._owners

    def ending(self, name: str) -> list[str]:
        """Return the paths with this last name; if there are none, ignore the case."""
        return self._exact.get(name) or self._folded.get(name.casefold(), [])

    def inside(self, owner: Sequence[str], name: str, *, strict: bool) -> list[str]:
        """Return the paths with this last name in the owner.

        Args:
            owner: At least one name; names of modules before it are optional.
            strict: The owner's case must match; otherwise it may differ if no path matches exactly.
        """
        pairs = self._inside.get((owner[-1].casefold(), name.casefold()), [])
        if name in self._exact:
            pairs = [path for path in pairs if self.paths[path][-1] == name]
        exact = [path for path in pairs if overlap(self.paths[path][:-1], owner)]
        if exact or strict:
            return exact
        folded = _folded(owner)
        return [path for path in pairs if overlap(_folded(self.paths[path][:-1]), folded)]

    def joined(self, parts: Sequence[str]) -> list[str]:
        """Return the paths that share the most names with joined names, modules included."""
        top = [parts[-1]] if len(self.paths.get(parts[-1], ())) == 1 else []
        pairs = self._inside.get((parts[-2].casefold(), parts[-1].casefold()), [])
        sizes = {path: overlap(self.paths[path], parts) for path in (*pairs, *top)}
        largest = max(sizes.values(), default=0)
        return [path for path, size in sizes.items() if size == largest > 0]


def overlap(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the shorter sequence if the longer ends with it, else 0."""
    size = min(len(first), len(second))
    return size if tuple(first[len(first) - size :]) == tuple(second[len(second) - size :]) else 0


def _folded(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


@dataclass(frozen=True, slots=True)
class CodeIndex:
    """The symbols of a store, and the names of its roots (see ``root_names``)."""

    symbols: SymbolIndex
    roots: Mapping[str, str]

    @classmethod
    def of(cls, store: CaseStore) -> CodeIndex:
        """Return the index of a whole store; raise ``StoreError`` if the store cannot be read."""
        values: dict[str, set[str]] = {"symbol": set(), "root": set()}
        for case in store.all():
            for field, found in values.items():
                value = case.metadata.get(field)
                if isinstance(value, str) and value:
                    found.add(value)
        return cls(SymbolIndex(sorted(values["symbol"])), root_names(sorted(values["root"])))
