"""Calls to a Qdrant server, tried again where a failure passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from casewright.errors import StoreUnavailableError, cleaned
from casewright.stores.engines.server_errors import Failure, error_of, failure_of

if TYPE_CHECKING:
    from tenacity import RetryCallState

#: Seconds between two tries: doubled each time from the first, with as much chance again, to the
#: longest. A server that asks for more than the last is not waited for.
FIRST, LONGEST, MOST = 0.25, 30.0, 60.0
#: How often a read is tried again, at most.
READ_RETRIES = 2
Answer = TypeVar("Answer")


class ServerCalls:
    """Makes calls to one server, raising ``StoreError`` and its kinds only.

    Whatever is called may be called twice: Qdrant's reads, upserts and deletes are idempotent.

    Args:
        server: Its address, for messages.
        retries: How often a write is tried again.
        timeout: Seconds for one request, and for a read with its retries.
        secrets: What no message may show.
    """

    def __init__(
        self, server: str, *, retries: int, timeout: float, secrets: Sequence[str]
    ) -> None:
        self._server = server
        self._retries = retries
        self._timeout = timeout
        self._secrets = [secret for secret in secrets if secret]

    def read(self, request: Callable[[], Answer]) -> Answer:
        """Make a call that somebody waits for: few tries, in about the time of one request."""
        return self._call(request, min(self._retries, READ_RETRIES), self._timeout, None)

    def write(
        self, request: Callable[[], Answer], given_up: threading.Event | None = None
    ) -> Answer:
        """Make a call that is worth waiting for; ``given_up`` ends the waiting between tries."""
        return self._call(request, self._retries, None, given_up)

    def _call(
        self,
        request: Callable[[], Answer],
        retries: int,
        within: float | None,
        given_up: threading.Event | None,
    ) -> Answer:
        from tenacity import Retrying, retry_if_exception, wait_exponential_jitter

        backoff = wait_exponential_jitter(multiplier=FIRST, max=LONGEST, jitter=FIRST)

        def wait(state: RetryCallState) -> float:
            return max(backoff(state), _failure(state).wait)

        def stop(state: RetryCallState) -> bool:
            passed = (state.seconds_since_start or 0.0) + state.upcoming_sleep
            return (
                state.attempt_number > retries
                or state.upcoming_sleep > MOST
                or (within is not None and passed > within)
            )

        def sleep(seconds: float) -> None:
            if given_up is None:
                time.sleep(seconds)
            elif given_up.wait(seconds):
                raise StoreUnavailableError(f"A request to {self._server} was given up.")

        tries = Retrying(
            retry=retry_if_exception(_passes), wait=wait, stop=stop, sleep=sleep, reraise=True
        )
        started = time.monotonic()
        try:
            return tries(request)
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            count, seconds = tries.statistics["attempt_number"], time.monotonic() - started
            tried = f"It was tried {count} times in {seconds:.1f} s." if count > 1 else ""
            raise error_of(self._masked(failure), self._server, tried) from error

    def _masked(self, failure: Failure) -> Failure:
        reason = failure.reason
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return replace(failure, reason=cleaned(reason, 200))


def _passes(error: BaseException) -> bool:
    failure = failure_of(error)
    return failure is not None and failure.passing


def _failure(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome is not None else None
    failure = failure_of(error) if error is not None else None
    assert failure is not None  # it is asked only after a failure that passes
    return failure
