"""One engine for each location: stores of a process share a folder, which only one client may open.

A folder is always opened with the engine that wrote it.
"""

from __future__ import annotations

import atexit
import itertools
import json
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from casewright.errors import DependencyError, InputError, cleaned
from casewright.stores.engines.edge_engine import EdgeEngine
from casewright.stores.engines.edge_shard import SHARDS
from casewright.stores.engines.engine import Engine
from casewright.stores.engines.folder import damaged, hold_folder, usable
from casewright.stores.engines.local_engine import LocalEngine
from casewright.stores.engines.qdrant_engine import QdrantEngine
from casewright.stores.engines.server_engine import ServerEngine
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.whole_file import write_whole

#: The file in a folder with the name of the engine that wrote it.
RECORD = "engine.json"
#: Qdrant Edge, and qdrant-client's local mode.
ENGINES = ("edge", "local")


@dataclass(slots=True)
class _Connection:
    """The engine of a location while it has users; ``name`` is that of a folder's engine."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    name: str = ""
    engine: Engine | None = None
    users: int = 0


_lock = threading.Lock()
_connections: dict[str, _Connection] = {}
_numbers = itertools.count()


def acquire(
    location: str | Path,
    *,
    api_key: str | None = None,
    lock_seconds: float = 0.0,
    timeout: int = 10,
    engine: str | None = None,
    server: ServerOptions | None = None,
) -> tuple[str, Engine]:
    """Return the engine of a location, opened if needed, and the key to release it.

    Raises:
        InputError: The location is unusable, or cannot have this engine or server options.
        DependencyError: The folder's engine is not installed.
        StoreError: The location cannot be opened.
    """
    resolved = _resolved(location)
    remote = "://" in resolved
    if engine is not None and (engine not in ENGINES or remote or resolved == ":memory:"):
        raise InputError(
            f"The engine {engine!r} is named for {resolved}. A folder's may be one of "
            f"{', '.join(ENGINES)}; other places have theirs."
        )
    if server is not None and not (remote and isinstance(server, ServerOptions)):
        raise InputError(
            f"server={type(server).__name__} is given for {resolved}. A server's URL may have "
            "ServerOptions; other places have none."
        )
    # Other options of a server make another connection; memory is never shared.
    key = f"{resolved} {timeout} {api_key} {server} {server and server.client}"
    key = key if remote else resolved
    with _lock:
        if resolved == ":memory:":
            key = f":memory: {next(_numbers)}"
        connection = _connections.setdefault(key, _Connection())
    with connection.lock:
        if connection.engine is not None:
            _check_engine(resolved, engine, connection.name)
        elif remote:
            connection.engine = ServerEngine.open(
                resolved, api_key=api_key, timeout=timeout, options=server
            )
        elif resolved == ":memory:":
            connection.engine = QdrantEngine.in_memory()
        else:
            connection.name, connection.engine = open_folder(
                Path(resolved), lock_seconds=lock_seconds, engine=engine
            )
        connection.users += 1
        return key, connection.engine


def share(key: str) -> None:
    """Add a user to an open engine."""
    connection = _connections[key]
    with connection.lock:
        connection.users += 1


def release(key: str, engine: Engine) -> None:
    """Remove a user of an engine; it is closed with the last one."""
    connection = _connections[key]
    with connection.lock:
        if connection.engine is not engine:
            return
        connection.users -= 1
        if connection.users == 0:
            connection.engine = None
            if key.startswith(":memory:"):
                del _connections[key]
            engine.close()


def open_folder(
    folder: Path, *, lock_seconds: float = 0.0, engine: str | None = None
) -> tuple[str, Engine]:
    """Open a folder, created if needed, with its engine; return the engine's name too.

    ``engine`` is that of a new folder, by default Edge if it is installed.

    Raises:
        InputError: The folder is a file, or was written by another engine.
        DependencyError: Edge is needed, and is not installed.
        StoreError: Another process holds the folder for longer than ``lock_seconds``, its files
            are damaged, or it cannot be created or used.
    """
    deadline = time.monotonic() + lock_seconds
    lock = hold_folder(folder, deadline)
    try:
        with usable(folder):
            written = writer(folder)
            if written:
                _check_engine(folder, engine, written)
            name = written or engine or ("edge" if _has_edge() else "local")
            if name == "edge" and not _has_edge():
                raise DependencyError(
                    f"The store's folder {folder} needs Qdrant Edge, which is not installed or "
                    "does not run here. Install it: pip install 'qdrant-edge-py>=0.9,<0.10'. Or "
                    "delete the folder and build the store again, without it."
                )
            if not written:
                write_whole(folder / RECORD, json.dumps({"engine": name}))
        if name == "edge":
            return name, EdgeEngine(folder, lock)
        return name, LocalEngine(folder, lock, deadline)
    except BaseException:
        lock.close()
        raise


def writer(folder: Path) -> str | None:
    """Return the name of the engine that wrote a folder; ``None`` for a new one."""
    try:
        name = json.loads((folder / RECORD).read_text(encoding="utf-8"))["engine"]
    except FileNotFoundError:
        # Written by a version without a record, or the record is lost.
        if (folder / "meta.json").exists() or (folder / "collection").exists():
            return "local"
        return "edge" if (folder / SHARDS).exists() else None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, f"its {RECORD} cannot be read") from error
    if name not in ENGINES:
        raise damaged(folder, f"its {RECORD} names the engine {name!r}, which is not known")
    return str(name)


def _check_engine(folder: str | Path, wanted: str | None, written: str) -> None:
    if wanted not in (None, written):
        raise InputError(
            f"The store's folder {folder} was written by the engine {written!r}, not by "
            f"{wanted!r}. Name no engine, or build the store anew in another folder."
        )


def _has_edge() -> bool:
    try:
        import qdrant_edge  # noqa: F401
    except ImportError:
        return False
    return True


@atexit.register
def _close_all() -> None:
    """Close open engines while Python can import: Qdrant imports a module to close a folder."""
    # Without the locks: a thread that waits for a folder has one.
    for connection in list(_connections.values()):
        if connection.engine is not None:
            connection.engine.close()


def _resolved(location: str | Path) -> str:
    text = str(location)
    if text == ":memory:":
        return text
    if not text.strip():
        raise InputError(
            'The location of a case store is empty. Give ":memory:", a folder, or a server\'s URL.'
        )
    if "://" not in text:
        if re.fullmatch(r"[\w.-]+:\d{2,5}/?", text):
            raise InputError(
                f"{text} is a host and a port, and no folder. For a server give http://{text}."
            )
        try:
            return str(Path(text).expanduser().resolve())
        # An unknown user's home, a NUL, a ring of links.
        except (RuntimeError, ValueError, OSError) as error:
            raise InputError(f"{text!r} is no folder path: {error}. Give another.") from error
    try:
        url = urlsplit(text)
        # Reading the port checks it.
        usable_url = url.scheme in ("http", "https") and url.hostname and url.port != 0
        # A client would ignore these parts, which may hold a secret.
        more = url.username or url.password or url.query or url.fragment
    except ValueError:
        usable_url = False
    if not usable_url:
        raise InputError(
            f"{cleaned(text)} is not the URL of a Qdrant server. Give one such as http://localhost:6333."
        )
    if more:
        raise InputError(
            f"The URL of {url.hostname} has a user, a query or a fragment, which Qdrant does not "
            "know. Pass an API key as api_key=, and headers by ServerOptions(client=...)."
        )
    return url.geturl()
