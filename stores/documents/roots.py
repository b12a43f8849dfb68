"""The roots that a store has documents of: which, what to call them, and forgetting one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

import numpy as np

from casewright.errors import InputError
from casewright.stores.documents.file_walk import is_unicode
from casewright.stores.engines.engine import NoCollectionError, Where
from casewright.stores.store import CaseStore
from casewright.stores.tenant import within

#: Cases that are removed together.
WRITES = 2000
#: Roots that an error names.
NAMED = 10


def roots_of(store: CaseStore) -> list[str]:
    """Return the roots that a store has documents of, in alphabetical order.

    It takes one search more than there are roots, whatever they hold: each finds one case of a
    root that was not found before.

    Raises:
        StoreError: The store cannot be read.
    """
    roots: list[str] = []
    # All cases are equally near: any of them will do.
    anywhere = np.zeros(store.schema.dimension, dtype=np.float32)
    with suppress(NoCollectionError):
        while True:
            # Every chunk has a position; other cases of the store are no documents.
            where: Where = {"position": {"gte": 1}, "root": {"not": roots}}
            found = store.engine.search(
                store.schema.name, anywhere, 1, within(where, store.tenant), exact=True
            )
            root = found[0].payload["metadata"].get("root") if found else None
            if root is None or root in roots:
                break
            roots.append(root)
    return sorted(roots)


def root_names(roots: Iterable[str]) -> dict[str, str]:
    """Return what to call each root: its last name, or all of it where another has that name."""
    names = {root: PurePosixPath(root).name for root in roots}
    shared = Counter(names.values())
    return {root: name if shared[name] == 1 else root for root, name in names.items()}


def remove_root(store: CaseStore, root: str | Path) -> int:
    """Remove every case of a root, whose folder need not be there any more; say how many.

    Killed in between, it leaves cases that another call removes.

    Args:
        store: Where the cases are.
        root: What the folder is called in the cases; or its path, which is that name where
            ``ingest`` was given no other.

    Raises:
        InputError: The store has nothing of that root; it names those that it has.
        StoreError: The store cannot be read or written to.
    """
    for name in dict.fromkeys((str(root), _absolute(root))):
        if name and is_unicode(name) and (cases := store.all({"root": name})):
            ids = [case.id for case in cases]
            for start in range(0, len(ids), WRITES):
                store.delete(ids[start : start + WRITES])
            return len(ids)
    raise InputError(
        f"The store has nothing of {str(root)!a}, so that nothing was removed. {_told(store)}"
    )


def _absolute(root: str | Path) -> str:
    try:
        return Path(root).expanduser().resolve().as_posix() if str(root) else ""
    except (OSError, RuntimeError, ValueError):
        return ""


def _told(store: CaseStore) -> str:
    roots = roots_of(store)
    if not roots:
        return "It has no documents at all."
    more = f", and {len(roots) - NAMED} more" if len(roots) > NAMED else ""
    return f"Give one of the roots that it has: {', '.join(roots[:NAMED])}{more}."
