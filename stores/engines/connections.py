"""One engine a place: stores of one process share the folder that only one client may open."""

from __future__ import annotations

import atexit
import itertools
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from casewright.errors import InputError, cleaned
from casewright.stores.engines.embedded import ENGINES, check_engine, open_folder
from casewright.stores.engines.engine import Engine
from casewright.stores.engines.qdrant_engine import QdrantEngine
from casewright.stores.engines.server_engine import ServerEngine
from casewright.stores.engines.server_options import ServerOptions


@dataclass(slots=True)
class _Place:
    """A place, its engine while it has users, and a lock: opening may take long.

    ``name`` is the engine's, where the place is a folder.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    name: str = ""
    engine: Engine | None = None
    users: int = 0


_lock = threading.Lock()
_places: dict[str, _Place] = {}
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
    """Return a key to release by, and the engine for a location, opened where it is not yet.

    Raises:
        InputError: The location is no ``":memory:"``, folder or URL, or the engine named is none
            that it can be opened with, or there are options of a server and there is none.
        DependencyError: The folder's engine is not installed.
        StoreError: It cannot be opened; see ``ServerEngine.open`` and ``open_folder``.
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
    # Who uses another API key or other options, or has less patience, has a connection of its own;
    # memory is nobody else's.
    key = f"{resolved} {timeout} {api_key} {server} {server and server.client}"
    key = key if remote else resolved
    with _lock:
        if resolved == ":memory:":
            key = f":memory: {next(_numbers)}"
        place = _places.setdefault(key, _Place())
    with place.lock:
        if place.engine is not None:
            check_engine(resolved, engine, place.name)
        elif remote:
            place.engine = ServerEngine.open(
                resolved, api_key=api_key, timeout=timeout, options=server
            )
        elif resolved == ":memory:":
            place.engine = QdrantEngine.in_memory()
        else:
            folder = Path(resolved)
            place.name, place.engine = open_folder(folder, lock_seconds=lock_seconds, engine=engine)
        place.users += 1
        return key, place.engine


def share(key: str) -> None:
    """Count one more user of an engine that is open."""
    place = _places[key]
    with place.lock:
        place.users += 1


def release(key: str, engine: Engine) -> None:
    """Give an engine back; the last user closes it."""
    place = _places[key]
    with place.lock:
        if place.engine is not engine:
            return
        place.users -= 1
        if place.users == 0:
            place.engine = None
            if key.startswith(":memory:"):
                del _places[key]
            engine.close()


@atexit.register
def _close_all() -> None:
    """Close what is still open while Python can: Qdrant imports a module to close a folder."""
    # No place's lock is taken here, since a thread that still waits for a folder has it.
    for place in list(_places.values()):
        if place.engine is not None:
            place.engine.close()


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
            raise InputError(f"{text!r} is no folder's path: {error}. Give another.") from error
    try:
        url = urlsplit(text)
        # The port is read, and checked, when it is asked for.
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
        # A client would leave these out, and what they hold may be a secret.
        more = url.username or url.password or url.query or url.fragment
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            f"{cleaned(text)} is no URL of a Qdrant server. Give one such as http://localhost:6333."
        )
    if more:
        raise InputError(
            f"The URL of {url.hostname} has a user, a query or a fragment, which Qdrant does not "
            "know. Pass an API key as api_key=, and headers by ServerOptions(client=...)."
        )
    return url.geturl()
