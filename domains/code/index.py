"""What is known of a source tree's store before it is searched, read at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from casewright.domains.code.symbol_index import SymbolIndex
from casewright.stores import CaseStore
from casewright.stores.documents.roots import root_names


@dataclass(frozen=True, slots=True)
class CodeIndex:
    """A store's symbols and roots.

    Attributes:
        symbols: The symbols that it has chunks of.
        roots: Root to what its files are named from on; see ``root_names``.
    """

    symbols: SymbolIndex
    roots: Mapping[str, str]

    @classmethod
    def of(cls, store: CaseStore) -> CodeIndex:
        """Read the whole store, once.

        Raises:
            StoreError: The store cannot be read.
        """
        symbols: set[str] = set()
        roots: set[str] = set()
        for case in store.all():
            for name, found in (("symbol", symbols), ("root", roots)):
                value = case.metadata.get(name)
                if isinstance(value, str) and value:
                    found.add(value)
        return cls(SymbolIndex(sorted(symbols)), root_names(sorted(roots)))
