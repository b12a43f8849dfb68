"""What qdrant-client's local mode keeps in a folder, read as data.

It pickles every point. A pickle may name any function, which reading it calls: whoever can write to
a folder could have code run by whoever opens it.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

#: All that a point's pickle names; the rest of it are texts, numbers, lists and mappings.
POINT = ("qdrant_client.http.models.models", "PointStruct")
_lock = threading.Lock()


class _Points(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != POINT:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no case does")
        return super().find_class(module, name)


def read_point(text: bytes) -> Any:
    """Return a point that local mode has pickled, and nothing else."""
    return _Points(BytesIO(text)).load()


@contextmanager
def points_only() -> Iterator[None]:
    """Have local mode read nothing but points while the context lasts.

    It reads a collection once, when that is opened or made. Other users of qdrant-client in this
    process read theirs as they always do, but for this moment.
    """
    from qdrant_client.local import persistence as local

    persistence: Any = local
    data = SimpleNamespace(dumps=pickle.dumps, loads=read_point)
    with _lock:
        before, persistence.pickle = persistence.pickle, data
        try:
            yield
        finally:
            persistence.pickle = before
