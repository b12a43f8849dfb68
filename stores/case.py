"""Cases: named problem components, a solution, its result, and metadata."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from casewright.errors import InputError

#: Namespace of the UUIDs of cases, so that equal cases have equal ids on every machine.
CASE_NAMESPACE = uuid.UUID("5f0c9f5c-7a1e-5d7b-9a54-3f7f1f0f6a10")


@dataclass(frozen=True, slots=True)
class Binary:
    """A component that is not text, such as an image, as bytes or a file's path.

    Attributes:
        media_type: IANA media type, for example ``"image/png"``.
        data: The bytes; ``None`` if ``path`` is given.
        path: The path of a file; ``None`` if ``data`` is given.
    """

    media_type: str
    data: bytes | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.path is None):
            problem = f"A Binary component ({self.media_type}) needs exactly one of data and path."
            raise InputError(f"{problem} Pass the bytes as data=, or the file's path as path=.")
        data: Any = self.data
        if not isinstance(data, (bytes, type(None))):
            raise InputError(
                f"A Binary component ({self.media_type}) has data {data!r:.200}, which is not "
                "bytes. Pass a file's path as path=."
            )

    def read(self) -> bytes:
        """Return the bytes, from memory or from the file."""
        return (self.data or b"") if self.path is None else Path(self.path).read_bytes()

    def to_json(self) -> dict[str, str]:
        """Return the JSON form: bytes in base64, a file by its path."""
        if self.path is not None:
            return {"$media_type": self.media_type, "path": self.path}
        text = base64.b64encode(self.data or b"").decode("ascii")
        return {"$media_type": self.media_type, "base64": text}

    @staticmethod
    def from_json(value: Any) -> Any:
        """Return the ``Binary`` of a mapping from ``to_json``; return other values unchanged."""
        match value:
            case {"$media_type": str(media_type), "base64": str(text)} if len(value) == 2:
                with suppress(ValueError):
                    return Binary(media_type, base64.b64decode(text, validate=True))
            case {"$media_type": str(media_type), "path": str(path)} if len(value) == 2:
                return Binary(media_type, path=path)
        return value


@dataclass(frozen=True, slots=True)
class Case:
    """A solved problem: for example, a question with its plan, or a passage of a document.

    Attributes:
        problem: The components by name; each is a text, a number, a JSON value or a ``Binary``.
        solution: The solution; any JSON value.
        result: The outcome of the solution; any JSON value.
        metadata: JSON values by name, for search conditions and display; ``tenant`` is the owner.
        quality: The case's quality, in the schema's range; ``None`` if it was not measured.
        quality_by: The name of the model that measured the quality.
        created: ISO 8601 time of creation, UTC.
        id: A UUID; if empty, the store derives it from tenant, schema, problem and solution.
    """

    problem: Mapping[str, Any]
    solution: Any = None
    result: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    quality: float | None = None
    quality_by: str = ""
    created: str = ""
    id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form without the id; engines make stored payloads from this form."""
        return {
            "problem": {
                name: value.to_json() if isinstance(value, Binary) else value
                for name, value in self.problem.items()
            },
            "solution": self.solution,
            "result": self.result,
            "metadata": dict(self.metadata),
            "quality": self.quality,
            "quality_by": self.quality_by,
            "created": self.created,
        }

    @classmethod
    def from_json(cls, case_id: str, payload: Mapping[str, Any]) -> Case:
        """Return a case from its id and its JSON form."""
        return cls(
            problem={name: Binary.from_json(value) for name, value in payload["problem"].items()},
            solution=payload.get("solution"),
            result=payload.get("result"),
            metadata=payload.get("metadata") or {},
            quality=payload.get("quality"),
            quality_by=payload.get("quality_by") or "",
            created=payload.get("created") or "",
            id=case_id,
        )


def case_id(case: Case, schema_name: str) -> str:
    """Return a case's derived id: UUIDv5 of its tenant, schema, problem and solution."""
    data = case.to_json()
    identity = [case.metadata.get("tenant", ""), schema_name, data["problem"], data["solution"]]
    # Keys of several types cannot be sorted; the round trip makes every key a text.
    json_identity = json_round_trip(identity, schema_name)
    text = json.dumps(json_identity, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return str(uuid.uuid5(CASE_NAMESPACE, text))


def json_round_trip(value: Any, schema_name: str) -> Any:
    """Return a value after a JSON round trip; raise ``InputError`` if JSON cannot represent it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"A case of schema {schema_name!r} cannot be JSON: {error}. Use Unicode text, finite "
            "numbers, lists and mappings; wrap bytes in Binary(media_type, data=...)."
        ) from error


def same_json(first: Any, second: Any) -> bool:
    """Return ``True`` for equal JSON values; unlike in Python, ``True`` does not equal ``1``."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def check_text(text: str) -> None:
    """Raise ``InputError`` for text with half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"A text cannot be written as UTF-8: it has {text[error.start : error.end]!a}."
        advice = "Correct how it was read, or replace that character."
        raise InputError(f"{problem} {advice}") from error


def canonical_id(text: str) -> str | None:
    """Return a UUID in its canonical spelling; ``None`` for other texts."""
    try:
        return str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        return None


def utc_now() -> str:
    """Return the current time as ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
