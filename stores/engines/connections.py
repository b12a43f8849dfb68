"""Opens engines by location. A location's stores share an engine: a folder can be opened once."""

from __future__ import annotations

import atexit
import itertools
import json
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from casewright.errors import DependencyError, InputError, cleaned
from casewright.stores.engines.edge_engine import EdgeEngine
from casewright.stores.engines.engine import Engine
from casewright.stores.engines.folder import damaged_error, folder_errors, hold_folder
from casewright.stores.engines.qdrant_engine import QdrantEngine
from casewright.stores.engines.server_engine import ServerEngine
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.whole_file import write_whole

#: The file that records the name of a folder's engine, and this name.
ENGINE_FILE = "engine.json"
ENGINE_NAME = "edge"


@dataclass(slots=True)
class _Connection:
    """A location's engine, which is ``None`` while no store uses the location."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Engine | None = None
    user_count: int = 0


_lock = threading.Lock()
_connections: dict[str, _Connection] = {}
_memory_numbers = itertools.count()


def acquire(
    location: str | Path,
    *,
    api_key: str | None = None,
    lock_seconds: float = 0.0,
    timeout: int = 10,
    server: ServerOptions | None = None,
) -> tuple[str, Engine]:
    """Add a user to a location's engine; return its key and the engine. See ``CaseStore``."""
    resolved = _resolve_location(location)
    is_memory, is_remote = resolved == ":memory:", "://" in resolved
    if server is not None and not (is_remote and isinstance(server, ServerOptions)):
        raise InputError(
            f"server={type(server).__name__} is given for {resolved}. Give ServerOptions, and "
            "give them only with a server's URL."
        )
    # Each set of options for a server has its own connection; stores in memory share none.
    server_key = f"{resolved} {timeout} {api_key} {server} {server and server.client}"
    local_key = f"{resolved} {next(_memory_numbers)}" if is_memory else resolved
    key = server_key if is_remote else local_key
    with _lock:
        connection = _connections.setdefault(key, _Connection())
    with connection.lock:
        if connection.engine is None:
            if is_remote:
                connection.engine = ServerEngine.open(
                    resolved, api_key=api_key, timeout=timeout, options=server
                )
            elif is_memory:
                # The import is slow, and a folder's engine does not need qdrant-client.
                from qdrant_client import QdrantClient

                connection.engine = QdrantEngine(QdrantClient(resolved), "memory")
            else:
                connection.engine = open_folder(Path(resolved), lock_seconds=lock_seconds)
        connection.user_count += 1
        return key, connection.engine


def add_user(key: str) -> None:
    """Add a user to an open engine."""
    connection = _connections[key]
    with connection.lock:
        connection.user_count += 1


def release(key: str, engine: Engine) -> None:
    """Remove a user of an engine, and close the engine after its last user."""
    connection = _connections[key]
    with connection.lock:
        if connection.engine is not engine:
            return
        connection.user_count -= 1
        if connection.user_count == 0:
            connection.engine = None
            if key.startswith(":memory:"):
                del _connections[key]
            engine.close()


def open_folder(folder: Path, *, lock_seconds: float = 0.0) -> EdgeEngine:
    """Open a folder, created if needed, with Qdrant Edge; see ``CaseStore`` for the errors."""
    lock = hold_folder(folder, lock_seconds)
    try:
        with folder_errors(folder):
            has_engine_file = check_engine(folder)
            try:
                import qdrant_edge  # noqa: F401
            except ImportError as error:
                raise DependencyError(
                    f"The store's folder {folder} needs Qdrant Edge, which is not installed or "
                    "does not run here. Install it: pip install 'qdrant-edge-py>=0.9,<0.10'. Or "
                    "give a Qdrant server's URL."
                ) from error
            if not has_engine_file:
                write_whole(folder / ENGINE_FILE, json.dumps({"engine": ENGINE_NAME}))
        return EdgeEngine(folder, lock)
    except BaseException:
        lock.close()
        raise


def check_engine(folder: Path) -> bool:
    """Return ``True`` if a folder has the file that names its engine.

    Raise ``InputError`` for a folder of qdrant-client's local mode, which an earlier version used,
    and ``StoreDamagedError`` if the file cannot be read or names another engine.
    """
    try:
        name = json.loads((folder / ENGINE_FILE).read_text(encoding="utf-8"))["engine"]
    except FileNotFoundError:
        # The folder was written by a version without this file, or the file was lost.
        is_local_mode = (folder / "meta.json").exists() or (folder / "collection").exists()
        name = "local" if is_local_mode else None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_error(folder, f"its {ENGINE_FILE} cannot be read") from error
    if name == "local":
        raise InputError(
            f"The store's folder {folder} was written by qdrant-client's local mode, which keeps "
            "pickles and is not read any more. Build the store again in another folder."
        )
    if name not in (None, ENGINE_NAME):
        raise damaged_error(folder, f"its {ENGINE_FILE} names the unknown engine {name!r}")
    return name is not None


@atexit.register
def _close_all() -> None:
    """Close open engines while Python can still import modules: Qdrant's ``close`` imports one."""
    # Do not take the connections' locks: a thread that waits for a folder may hold one.
    for connection in list(_connections.values()):
        if connection.engine is not None:
            connection.engine.close()


def _resolve_location(location: str | Path) -> str:
    text = str(location)
    if text == ":memory:":
        return text
    if not text.strip():
        advice = 'Give ":memory:", a folder, or a server\'s URL.'
        raise InputError(f"The location of a case store is empty. {advice}")
    if "://" not in text:
        if re.fullmatch(r"[\w.-]+:\d{2,5}/?", text):
            problem = f"{text} is a host and a port, not a folder."
            raise InputError(f"{problem} For a server give http://{text}.")
        try:
            return str(Path(text).expanduser().resolve())
        # The home of an unknown user, a NUL character or a loop of links raises an error.
        except (RuntimeError, ValueError, OSError) as error:
            raise InputError(f"{text!r} is not a folder path: {error}. Give another.") from error
    try:
        url = urlsplit(text)
        # Reading the port checks it.
        is_usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
        # Qdrant's client would ignore these parts, which may hold a secret.
        has_extra_parts = url.username or url.password or url.query or url.fragment
    except ValueError:
        is_usable = False
    if not is_usable:
        problem = f"{cleaned(text)} is not the URL of a Qdrant server."
        raise InputError(f"{problem} Give one such as http://localhost:6333.")
    if has_extra_parts:
        raise InputError(
            f"The URL of {url.hostname} has a user, a query or a fragment, which Qdrant does not "
            "know. Pass an API key as api_key=, and headers by ServerOptions(client=...)."
        )
    return url.geturl()
