"""Calls to a Qdrant server over REST or gRPC: retries, and store errors for failed requests."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from casewright.errors import StoreError, StoreUnavailableError, cleaned, one_line
from casewright.stores.engines.engine import NoCollectionError

if TYPE_CHECKING:
    from tenacity import RetryCallState

#: Minimum and maximum seconds between two attempts. The wait doubles each time, plus jitter.
MIN_WAIT, MAX_WAIT = 0.25, 30.0
#: If a server asks for a wait of more seconds than this, the request is not sent again.
MAX_RETRY_AFTER = 60.0
#: Maximum number of retries of a read.
READ_RETRIES = 2
#: HTTP (RFC 9110) and gRPC codes of a busy server, or of a gateway that cannot reach the server.
TEMPORARY = {"408", "429", "502", "503", "504", "RESOURCE_EXHAUSTED"}
#: gRPC codes of a server that does not answer.
UNREACHED = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
REFUSED_KEY = {"401", "403", "UNAUTHENTICATED", "PERMISSION_DENIED"}
MISSING = {"404", "NOT_FOUND"}
Answer = TypeVar("Answer")


class ServerCalls:
    """Calls to one server; they raise only ``StoreError`` and its subclasses.

    A request may be sent twice: Qdrant's reads, upserts and deletes are idempotent. A request has
    at most ``retries`` retries; a read also has at most ``READ_RETRIES``. ``timeout`` is the time
    limit of a request in seconds; the attempts of a read share this limit. ``secrets`` are masked
    in messages.
    """

    def __init__(self, server: str, *, retries: int, timeout: float, secrets: list[str]) -> None:
        self._server, self._retries, self._timeout = server, retries, timeout
        self._secrets = [secret for secret in secrets if secret]

    def read(self, request: Callable[[], Answer]) -> Answer:
        """Send a read with few retries, within about the time limit of one request."""
        retries = min(self._retries, READ_RETRIES)
        return self._call(request, retries, self._timeout, threading.Event())

    def write(self, request: Callable[[], Answer], stop: threading.Event | None = None) -> Answer:
        """Send a write with retries; setting ``stop`` ends a wait between attempts."""
        return self._call(request, self._retries, math.inf, stop or threading.Event())

    def _call(
        self, request: Callable[[], Answer], retries: int, max_seconds: float, stop: threading.Event
    ) -> Answer:
        """Send a request, with retries for at most ``max_seconds`` and until ``stop`` is set."""
        from tenacity import Retrying, retry_if_exception, wait_exponential_jitter

        backoff = wait_exponential_jitter(multiplier=MIN_WAIT, max=MAX_WAIT, jitter=MIN_WAIT)

        def wait(state: RetryCallState) -> float:
            failure = _as_failure(state.outcome.exception() if state.outcome else None)
            return max(backoff(state), failure.wait_seconds if failure else 0.0)

        def can_retry(error: BaseException) -> bool:
            failure = _as_failure(error)
            return failure is not None and failure.is_temporary

        def must_stop(state: RetryCallState) -> bool:
            elapsed = (state.seconds_since_start or 0.0) + state.upcoming_sleep
            is_used_up = state.attempt_number > retries or elapsed > max_seconds
            return is_used_up or state.upcoming_sleep > MAX_RETRY_AFTER

        def sleep(seconds: float) -> None:
            if stop.wait(seconds):
                raise StoreUnavailableError(f"A request to {self._server} was cancelled.")

        retry = retry_if_exception(can_retry)
        retrying = Retrying(retry=retry, wait=wait, stop=must_stop, sleep=sleep, reraise=True)
        started = time.monotonic()
        try:
            return retrying(request)
        except Exception as error:
            if (failure := _as_failure(error)) is None:
                raise
            count, seconds = retrying.statistics["attempt_number"], time.monotonic() - started
            attempts = f"It was tried {count} times in {seconds:.1f} s." if count > 1 else ""
            for secret in self._secrets:
                failure.reason = failure.reason.replace(secret, "***")
            failure.reason = cleaned(failure.reason, 200)
            raise _as_store_error(failure, self._server, attempts) from error


@dataclass(slots=True)
class _Failure:
    """The failure of a request: HTTP status or gRPC code (empty if there is none), and reason.

    If the failure ``is_temporary``, a request may succeed ``wait_seconds`` later.
    """

    status: str
    reason: str
    is_temporary: bool
    wait_seconds: float = 0.0


def _as_failure(error: BaseException | None) -> _Failure | None:
    """Return an error of ``QdrantClient`` as a failure; ``None`` for an error of Casewright."""
    import grpc
    import httpx
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, StoreError) or not isinstance(error, Exception):
        return None
    if isinstance(error, QdrantException):
        # The status is 429. The attribute exists only if the server gave whole seconds.
        return _Failure("429", str(error), True, getattr(error, "retry_after_s", 0.0))
    if isinstance(error, UnexpectedResponse):
        status = str(error.status_code)
        retry_after = error.headers.get("Retry-After", "")
        seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
        reason = _response_reason(error.content or b"")
        return _Failure(status, reason, status in TEMPORARY, seconds)
    if isinstance(error, ResponseHandlingException):
        source = error.source
        lasting = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.ProxyError)
        is_temporary = isinstance(source, httpx.TransportError) and not isinstance(source, lasting)
        return _Failure("", one_line(source), is_temporary)
    if isinstance(error, grpc.RpcError):
        call: Any = error
        status, reason = str(call.code().name), str(call.details())
        if status in UNREACHED:
            return _Failure("", f"{status} {reason}", True)
        return _Failure(status, reason, status in TEMPORARY)
    return _Failure("", one_line(error), False)


def _response_reason(content: bytes) -> str:
    try:
        return str(json.loads(content)["status"]["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        # The caller masks secrets in the text, and then shortens it to a line.
        return content[:10_000].decode("utf-8", "replace")


def _as_store_error(failure: _Failure, server: str, attempts: str) -> StoreError:
    """Return the error of a failure; ``attempts`` is a sentence on the attempts, or empty."""
    status, reason = failure.status, failure.reason
    # A wrong URL gives the status of a missing resource too, but not this reason.
    if status in MISSING and "doesn't exist" in reason:
        return NoCollectionError(f"The Qdrant server {server}: {reason}")
    if status in REFUSED_KEY:
        problem = f"refused the API key, or asks for one: {status} {reason}."
        advice = "Pass a key that permits this call as api_key=."
    elif status == "413":
        problem = f"refused a request as too large: {status} {reason}."
        advice = "Lower upload_batch in ServerOptions, or raise the server's max_request_size_mb."
    elif status and failure.is_temporary:
        problem = f"is busy, or its gateway cannot reach it: {status} {reason}."
        if failure.wait_seconds:
            problem += f" It asks for a wait of {failure.wait_seconds:.0f} s."
        advice = "Try again later, or lower parallel in ServerOptions."
    elif status:
        problem = f"refused: {status} {reason}."
        advice = "Check the URL, the API key and the server's log."
    elif failure.is_temporary:
        problem = f"does not answer: {reason}."
        advice = "Check that it runs and that the URL is right."
    else:
        problem = f"did not give a Qdrant answer, or the request could not be sent: {reason}."
        advice = "Check the URL and the server options."
    parts = f"The Qdrant server {server} {problem}", attempts, advice
    return StoreUnavailableError(" ".join(filter(None, parts)))
