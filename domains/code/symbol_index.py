"""Finds the symbols in a store of source code by name and by enclosing definition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from casewright.stores import CaseStore
from casewright.stores.documents.cases import root_names


class SymbolIndex:
    """An index of symbols and of the definitions that enclose them.

    A symbol is the dotted name of a definition. A chunk has one symbol: if the first lines of
    ``Splitter`` share a chunk with its first method, only ``Splitter.split`` is stored. Therefore
    the index adds ``Splitter``.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        #: The names in each path: in a symbol, or in the dotted name of an enclosing definition.
        self.parts_of: dict[str, tuple[str, ...]] = {}
        self._symbols_in: defaultdict[str, list[str]] = defaultdict(list)
        self._paths_by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._paths_by_folded_name: defaultdict[str, list[str]] = defaultdict(list)
        self._paths_by_owner_and_name: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for symbol in dict.fromkeys(symbols):
            parts = tuple(symbol.split("."))
            path = symbol
            for length in range(len(parts), 0, -1):
                if path not in self.parts_of:
                    self._add(path, parts[:length])
                self._symbols_in[path].append(symbol)
                path = path.rpartition(".")[0]
        self._folded_owners = {owner for owner, _ in self._paths_by_owner_and_name}

    def _add(self, path: str, parts: tuple[str, ...]) -> None:
        self.parts_of[path] = parts
        # A symbol such as ``a.`` has no last name.
        if name := parts[-1]:
            self._paths_by_name[name].append(path)
            self._paths_by_folded_name[name.casefold()].append(path)
            if len(parts) > 1:
                self._paths_by_owner_and_name[parts[-2].casefold(), name.casefold()].append(path)

    def members(self, path: str) -> list[str]:
        """Return the path itself, if the path is a symbol, and the symbols defined in it."""
        return self._symbols_in.get(path, [])

    def has_exact(self, name: str) -> bool:
        """Return ``True`` if a path ends with this name, in the same case."""
        return name in self._paths_by_name

    def encloses_others(self, name: str) -> bool:
        """Return ``True`` if a definition with this name, in any case, encloses others."""
        return name.casefold() in self._folded_owners

    def paths_ending_in(self, name: str) -> list[str]:
        """Return the paths whose last name is ``name``, in the same case or else in any case."""
        return self._paths_by_name.get(name) or self._paths_by_folded_name.get(name.casefold(), [])

    def paths_inside(self, owner: Sequence[str], name: str, *, strict: bool) -> list[str]:
        """Return the paths of the definitions called ``name`` directly inside ``owner``.

        ``owner`` ends with the name of the enclosing definition; outer names may precede. The case
        of ``name`` counts if any definition has exactly this name. The case of ``owner`` counts if
        ``strict`` is true, or if exactly this owner has such a definition.
        """
        paths = self._paths_by_owner_and_name.get((owner[-1].casefold(), name.casefold()), [])
        if name in self._paths_by_name:
            paths = [path for path in paths if self.parts_of[path][-1] == name]
        exact = [path for path in paths if suffix_overlap(self.parts_of[path][:-1], owner)]
        if exact or strict:
            return exact
        folded = _fold(owner)
        return [path for path in paths if suffix_overlap(_fold(self.parts_of[path][:-1]), folded)]

    def paths_of_dotted_name(self, parts: Sequence[str]) -> list[str]:
        """Return the paths that agree most with the end of the dotted name with these parts.

        The dotted name may begin with names of modules, which no path has.
        """
        top_level = [parts[-1]] if len(self.parts_of.get(parts[-1], ())) == 1 else []
        nested = self._paths_by_owner_and_name.get((parts[-2].casefold(), parts[-1].casefold()), [])
        paths = (*nested, *top_level)
        overlap_of = {path: suffix_overlap(self.parts_of[path], parts) for path in paths}
        longest = max(overlap_of.values(), default=0)
        return [path for path, length in overlap_of.items() if length == longest > 0]


def suffix_overlap(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the shorter sequence if the longer sequence ends with it, else 0."""
    size = min(len(first), len(second))
    return size if tuple(first[len(first) - size :]) == tuple(second[len(second) - size :]) else 0


def _fold(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


class CodeIndex(NamedTuple):
    """The symbols of a store, and a name for each root folder (see ``root_names``)."""

    symbols: SymbolIndex
    roots: Mapping[str, str]

    @classmethod
    def of(cls, store: CaseStore) -> CodeIndex:
        """Return the index of a whole store; raise ``StoreError`` if the store cannot be read."""
        by_field: dict[str, set[str]] = {"symbol": set(), "root": set()}
        for case in store.all():
            for field, values in by_field.items():
                value = case.metadata.get(field)
                if isinstance(value, str) and value:
                    values.add(value)
        return cls(SymbolIndex(sorted(by_field["symbol"])), root_names(sorted(by_field["root"])))
