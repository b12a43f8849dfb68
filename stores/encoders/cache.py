"""Caches embeddings by model and text, in memory and on disk."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreError
from casewright.stores.encoders.cross_encoder import CrossEncoder
from casewright.stores.encoders.encoder import Encoder, checked_vectors
from casewright.stores.progress import note

#: Maximum number of vectors in memory: with 384 dimensions, these are 6 MB.
MAX_MEMORY_VECTORS = 4096
#: Hashed before a query of ``embed_queries``, so that the query's key differs from the key of the
#: same text in ``embed``. No UTF-8 text has this byte.
QUERY_PREFIX = b"\xff"
CACHE_FILE = "embeddings.sqlite"
#: Maximum number of keys in one SQL query, below SQLite's limit on variables.
KEYS_PER_QUERY = 500
#: Number of bytes of the checksum after each vector.
CRC_BYTES = 4
CREATE = "CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
#: The cast makes each vector a BLOB, since damage may have changed a vector's type.
SELECT_ROWS = "SELECT key, CAST(vector AS BLOB) FROM embedding"


class CachedEncoder:
    """An encoder with a cache in memory and, given a folder, on disk.

    The disk cache is one SQLite file; a key is the SHA-256 of the encoder's name and the text.
    A cache that cannot be read or written is ignored. If a vector is damaged, its text is encoded
    again. ``answer_logits`` uses ``cross_encoder`` if given, else the encoder.

    Attributes:
        encoder: The encoder whose vectors are cached.
        name: The encoder's name.
        dimension: The length of the encoder's vectors.
        cue: The text to put before a query that is compared with passages; may be empty.
    """

    def __init__(
        self,
        encoder: Encoder,
        folder: Path | None = None,
        cross_encoder: CrossEncoder | None = None,
    ) -> None:
        self.encoder, self.name, self.dimension = encoder, encoder.name, encoder.dimension
        self.cue: str = getattr(encoder, "cue", "")
        self._cross_encoder = cross_encoder
        self._memory: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.RLock()
        self._file = _VectorFile(folder, self.dimension)
        self._unread_files: list[Path] = []
        self._borrowed_vectors: dict[bytes, NDArray[np.float32]] = {}

    def lend(self, file: Path) -> None:
        """Borrow the vectors of a file that ``write_vectors`` made; ignore an unreadable file.

        The file is loaded when several texts are first embedded together: a single text is a
        question, and the file has no vectors of questions.
        """
        with self._lock:
            self._unread_files.append(file)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension); equal texts are encoded once.

        Raise ``InputError`` if the encoder did not answer with a finite vector for each text.
        """
        return self._cached(texts, self.encoder.embed, b"")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as ``embed`` does, with the encoder's ``embed_queries`` if it has one."""
        embed = getattr(self.encoder, "embed_queries", None)
        return self.embed(texts) if embed is None else self._cached(texts, embed, QUERY_PREFIX)

    def answer_logits(
        self, question: str, passages: Sequence[Sequence[str]]
    ) -> list[NDArray[np.float32]] | None:
        """Return each passage's logits by the cross-encoder, else by the encoder, else ``None``."""
        method = getattr(self._cross_encoder or self.encoder, "answer_logits", None)
        return None if method is None else method(question, passages)

    def _cached(
        self, texts: Sequence[str], encode: Callable[[list[str]], Any], prefix: bytes
    ) -> NDArray[np.float32]:
        keys = [_key(self.name, text, prefix) for text in texts]
        with self._lock:
            vectors = {key: self._memory[key] for key in keys if key in self._memory}
            while self._unread_files and len(keys) > 1 and len(vectors) < len(set(keys)):
                self._borrowed_vectors |= _read_vectors(self._unread_files.pop(), self.dimension)
            vectors |= {k: self._borrowed_vectors[k] for k in keys if k in self._borrowed_vectors}
            if len(vectors) < len(set(keys)):
                vectors |= self._file.read([key for key in set(keys) if key not in vectors])
            missing = {k: text for k, text in zip(keys, texts, strict=True) if k not in vectors}
        if missing:
            answer = encode(list(missing.values()))
            rows = checked_vectors(answer, len(missing), self.dimension, self.name)
            encoded = dict(zip(missing, rows, strict=True))
            vectors |= encoded
            # A single text is a question, cheap to encode and private: it is not written to disk.
            if len(encoded) > 1:
                with self._lock:
                    self._file.write(encoded)
        with self._lock:
            for key in keys:
                self._memory[key] = vectors[key]
                self._memory.move_to_end(key)
            while len(self._memory) > MAX_MEMORY_VECTORS:
                self._memory.popitem(last=False)
        result = [vectors[key] for key in keys]
        return np.stack(result) if result else np.zeros((0, self.dimension), dtype=np.float32)


def write_vectors(file: Path, encoder: Encoder, texts: Sequence[str]) -> None:
    """Encode texts, and write their vectors by cache key to a file for ``lend``."""
    from safetensors.numpy import save_file

    unique = sorted(set(texts))
    keys = np.frombuffer(b"".join(_key(encoder.name, text) for text in unique), dtype=np.uint8)
    vectors = np.asarray(encoder.embed(unique), dtype=np.float32)
    save_file({"keys": keys.reshape(len(unique), -1), "vectors": vectors}, file)


def _read_vectors(file: Path, dimension: int) -> dict[bytes, NDArray[np.float32]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(file)
        keys, vectors = arrays["keys"], arrays["vectors"]
    except (OSError, SafetensorError, KeyError):
        return {}
    rows = vectors if vectors.shape[1:] == (dimension,) else ()
    return {key.tobytes(): row for key, row in zip(keys, rows, strict=False)}


def _key(name: str, text: str, prefix: bytes = b"") -> bytes:
    return hashlib.sha256(prefix + f"{name}\0{text}".encode("utf-8", "surrogatepass")).digest()


class UncachedQuestionEncoder:
    """A cached encoder that bypasses the cache for single texts, to time new questions."""

    def __init__(self, encoder: CachedEncoder) -> None:
        self._encoder, self.name, self.dimension = encoder, encoder.name, encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        return (self._encoder.encoder if len(texts) == 1 else self._encoder).embed(texts)


class _VectorFile:
    """Vectors in an SQLite file, which is not used after an error. Not thread-safe."""

    def __init__(self, folder: Path | None, dimension: int) -> None:
        self._folder, self._dimension = folder, dimension
        self._db: sqlite3.Connection | None = None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the undamaged vectors of the keys that the file has."""
        vectors: dict[bytes, NDArray[np.float32]] = {}
        if (db := self._connection()) is None:
            return vectors
        try:
            for start in range(0, len(keys), KEYS_PER_QUERY):
                batch = keys[start : start + KEYS_PER_QUERY]
                placeholders = ",".join("?" * len(batch))
                for key, blob in db.execute(f"{SELECT_ROWS} WHERE key IN ({placeholders})", batch):
                    if len(blob) == 4 * self._dimension + CRC_BYTES and _is_intact(key, blob):
                        vectors[key] = np.frombuffer(blob[:-CRC_BYTES], dtype=np.float32)
        except sqlite3.Error as error:
            self._give_up(error)
        return vectors

    def write(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        if (db := self._connection()) is None:
            return
        blobs = [(key, vector.astype(np.float32).tobytes()) for key, vector in vectors.items()]
        rows = [(key, blob + _checksum(key, blob)) for key, blob in blobs]
        try:
            with db:
                db.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._give_up(error)

    def _connection(self) -> sqlite3.Connection | None:
        if self._db is None and self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                file = self._folder / CACHE_FILE
                self._db = sqlite3.connect(file, timeout=5, check_same_thread=False)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.execute(CREATE)
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
        return self._db

    def _give_up(self, error: Exception) -> None:
        # An OperationalError, such as a full disk or a lock, is temporary and is not reported.
        is_temporary = isinstance(error, sqlite3.OperationalError)
        if isinstance(error, sqlite3.DatabaseError) and not is_temporary:
            note(
                f"The cache of embeddings {self._folder} is damaged, and not used: {error}. "
                "casewright repair removes it."
            )
        self._folder, self._db = None, None


def check_vectors(file: Path, *, remove: bool = False) -> tuple[int, int] | None:
    """Return the number of vectors, and of unusable vectors; ``None`` for an unusable file.

    ``remove`` deletes the unusable vectors or file. Raise ``StoreError`` if the file is in use.
    """
    try:
        with closing(sqlite3.connect(file, timeout=5)) as db:
            db.execute(CREATE)
            total, damaged = 0, []
            for key, blob in db.execute(SELECT_ROWS):
                total += 1
                # Vectors of an older version, without checksum, count as unusable too.
                if not _is_intact(key, blob):
                    damaged.append((key,))
            if remove:
                with db:
                    db.executemany("DELETE FROM embedding WHERE key = ?", damaged)
            return total, len(damaged)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{file} cannot be checked: {error}. Try again.") from error
    except sqlite3.DatabaseError:
        if remove:
            for ending in ("", "-wal", "-shm"):
                file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)
        return None


def _is_intact(key: bytes, blob: bytes) -> bool:
    return blob[-CRC_BYTES:] == _checksum(key, blob[:-CRC_BYTES])


def _checksum(key: bytes, vector: bytes) -> bytes:
    return zlib.crc32(vector, zlib.crc32(key)).to_bytes(CRC_BYTES, "little")
