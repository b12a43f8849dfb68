"""The symbols of a source tree, to be found by their names and by what they are defined in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class SymbolIndex:
    """A store's symbols and all that they are in: with ``Splitter.split`` goes ``Splitter``.

    A class whose head shares a chunk with its first method has no chunks, and so no symbol, of its
    own, but can be asked for by its name.

    Args:
        symbols: Symbols that the store has chunks of, their names joined by dots.

    Attributes:
        paths: The symbols and what they are in, each with its names.
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
        """Return the symbols that a path stands for: itself, and what is defined in it."""
        return self._members.get(path, [])

    def exactly(self, name: str) -> bool:
        """Say whether a symbol, or what one is in, is called so in just these letters."""
        return name in self._exact

    def owns(self, name: str) -> bool:
        """Say whether anything is defined in what is called so, in whatever case."""
        return name.casefold() in self._owners

    def ending(self, name: str) -> list[str]:
        """Return the paths whose last name is this; in another case where there is none."""
        return self._exact.get(name) or self._folded.get(name.casefold(), [])

    def inside(self, owner: Sequence[str], name: str, *, strict: bool) -> list[str]:
        """Return the paths of this last name in what the owner's names name.

        Args:
            owner: At least one name; names of modules may stand before, or be left out.
            name: The last name.
            strict: The owner's case counts; else only where there is one in that case.
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
        """Return the paths that joined names are of: modules may stand before, classes be left out.

        Those that have most of the names count.
        """
        top = [parts[-1]] if len(self.paths.get(parts[-1], ())) == 1 else []
        pairs = self._inside.get((parts[-2].casefold(), parts[-1].casefold()), [])
        sizes = {path: overlap(self.paths[path], parts) for path in (*pairs, *top)}
        most = max(sizes.values(), default=0)
        return [path for path, size in sizes.items() if size == most > 0]


def overlap(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many names the shorter has where the longer ends with it, else 0."""
    size = min(len(one), len(other))
    return size if tuple(one[len(one) - size :]) == tuple(other[len(other) - size :]) else 0


def _folded(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)
