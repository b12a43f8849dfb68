"""What a request to a Qdrant server ended with, over REST or gRPC, and how that is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from casewright.errors import StoreError, StoreUnavailableError, told
from casewright.stores.engines.engine import NoCollectionError

#: Answers of a server that is busy, or of a gateway whose server is on its way (RFC 9110).
PASSING = {"408", "429", "502", "503", "504", "RESOURCE_EXHAUSTED"}
#: How gRPC says that there was no answer.
UNREACHED = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
REFUSED_KEY = {"401", "403", "UNAUTHENTICATED", "PERMISSION_DENIED"}
MISSING = {"404", "NOT_FOUND"}
TOO_LARGE = {"413"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed.

    Attributes:
        status: The server's or gateway's answer, a number or a gRPC code; empty where there was
            none, or one that is not Qdrant's.
        reason: What it said.
        passing: Whether the same request may well succeed a little later.
        wait: Seconds that the server asks to wait.
    """

    status: str
    reason: str
    passing: bool
    wait: float = 0.0


def failure_of(error: BaseException) -> Failure | None:
    """Return why a request of ``QdrantClient`` failed; ``None`` for an error that is ours."""
    import grpc
    import httpx
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, StoreError) or not isinstance(error, Exception):
        return None
    if isinstance(error, QdrantException):
        # 429 with a time to wait; the base class where that is no whole number.
        return Failure("429", str(error), True, getattr(error, "retry_after_s", 0.0))
    if isinstance(error, UnexpectedResponse):
        status = str(error.status_code)
        reason = _reason(error.content or b"")
        asked = error.headers.get("Retry-After", "")
        wait = float(asked) if asked.isascii() and asked.isdigit() else 0.0
        return Failure(status, reason, status in PASSING, wait)
    if isinstance(error, ResponseHandlingException):
        source = error.source
        lasting = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.ProxyError)
        passing = isinstance(source, httpx.TransportError) and not isinstance(source, lasting)
        return Failure("", told(source), passing)
    if isinstance(error, grpc.RpcError):
        call: Any = error
        status, reason = str(call.code().name), str(call.details())
        if status in UNREACHED:
            return Failure("", f"{status} {reason}", True)
        return Failure(status, reason, status in PASSING)
    return Failure("", told(error), False)


def _reason(content: bytes) -> str:
    """Return what an answer's body says, Qdrant's or a gateway's."""
    try:
        return str(json.loads(content)["status"]["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        # Cut to a line only once it is without secrets.
        return content[:10_000].decode("utf-8", "replace")


def error_of(failure: Failure, server: str, tried: str) -> StoreError:
    """Return the error to raise: what happened, where, how often it was tried, what to do.

    Args:
        failure: Why the last try failed.
        server: The server's address.
        tried: A sentence on the tries, or nothing.
    """
    status, reason = failure.status, failure.reason
    if status in MISSING and "doesn't exist" in reason:
        return NoCollectionError(f"The Qdrant server {server}: {reason}")
    if status in REFUSED_KEY:
        problem = f"refused the API key, or asks for one: {status} {reason}."
        mend = "Pass one that may do this as api_key=."
    elif status in TOO_LARGE:
        problem = f"refused a request as too large: {status} {reason}."
        mend = "Lower upload_batch in ServerOptions, or raise the server's max_request_size_mb."
    elif status and failure.passing:
        problem = f"is busy, or its gateway does not reach it: {status} {reason}."
        if failure.wait:
            problem += f" It asks to be left alone for {failure.wait:.0f} s."
        mend = "Try again later, or lower parallel in ServerOptions."
    elif status:
        problem = f"refused: {status} {reason}."
        mend = "Check the URL, the API key and the server's log."
    elif failure.passing:
        problem = f"does not answer: {reason}."
        mend = "Check that it runs and that the URL is right."
    else:
        problem = f"answered with what is no Qdrant answer, or could not be asked: {reason}."
        mend = "Check the URL and the server options."
    return StoreUnavailableError(
        " ".join(filter(None, (f"The Qdrant server {server} {problem}", tried, mend)))
    )
