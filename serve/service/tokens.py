"""Who asks: the tenant of a bearer token, and of nothing else."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request

from casewright.errors import InputError
from casewright.serve.service.problems import problem_response
from casewright.serve.settings.tokens import Grant

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: How often it is looked whether tokens have changed.
LOOK_SECONDS = 1.0
#: Whose requests come without tokens.
LOCAL = "local"
#: What anyone may read: that the service lives, how it is used, and the page.
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/docs", "/openapi.json"})
#: Below it are the page's files.
PAGE = "/page/"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is."""

    tenant: str


def caller_of(request: Request) -> Caller:
    """Return whose request it is; every route's but the open ones' is somebody's."""
    found: Caller = request.state.caller
    return found


def tenant_of(scope: Scope) -> str:
    """Return whose request it is; empty where anyone may make it, or nobody looked."""
    found: Caller | None = scope.get("state", {}).get("caller")
    return found.tenant if found is not None else ""


class Tokens:
    """Knows the tenant of every token.

    Tokens are compared by their digests, all of them, in a time that does not depend on which one
    fits or how far.

    Args:
        tokens: What each token gives.
        again: Returns the tokens where they have changed, else ``None``; called every second at
            most. Where tokens were asked for, they are also when none is left.
    """

    def __init__(
        self,
        tokens: Mapping[str, Grant],
        again: Callable[[], Mapping[str, Grant] | None] = lambda: None,
    ) -> None:
        self._asked_for = bool(tokens)
        self._again = again
        self._looked = time.monotonic()
        self._read(tokens)

    def __bool__(self) -> bool:
        return self._asked_for

    def tenant(self, token: str) -> str | None:
        """Return a token's tenant; ``None`` where the token is not known, or has expired."""
        self._look()
        given, found = _digest(token), None
        for digest, grant in self._grants:
            if hmac.compare_digest(digest, given):
                found = grant
        if found is None or (found.expires is not None and found.expires <= datetime.now(UTC)):
            return None
        return found.tenant

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if (tokens := self._again()) is not None:
                self._read(tokens)

    def _read(self, tokens: Mapping[str, Grant]) -> None:
        self._grants = [(_digest(token), grant) for token, grant in tokens.items()]


class Authenticated:
    """Refuses requests without a known token, before anything of them is read.

    Without tokens every request is the tenant ``local``. A page of the web can have a browser send
    requests too: then the ``Host`` is another than a loopback address (DNS rebinding), or the
    ``Origin`` is the page's own. Both are refused.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        state = scope.setdefault("state", {})
        if not self._tokens:
            if refusal := _sent_by_a_page(headers):
                await problem_response(400, refusal)(scope, receive, send)
                return
            state["caller"] = Caller(LOCAL)
        elif not is_open(scope):
            kind, _, token = headers.get("authorization", "").partition(" ")
            tenant = self._tokens.tenant(token.strip()) if kind.lower() == "bearer" else None
            if tenant is None:
                detail = "Send a known token that has not expired: Authorization: Bearer TOKEN."
                refused = problem_response(401, detail, {"WWW-Authenticate": "Bearer"})
                await refused(scope, receive, send)
                return
            state["caller"] = Caller(tenant)
        await self._app(scope, receive, send)


def is_open(scope: Scope) -> bool:
    """Say whether a request is one that anyone may make."""
    path = scope["path"]
    return (path in OPEN_PATHS or path.startswith(PAGE)) and scope["method"] in ("GET", "HEAD")


def check_exposure(host: str, tokens: Mapping[str, Grant], *, without_tokens: bool) -> None:
    """Look whether the service may listen on an address.

    Raises:
        InputError: There are no tokens, and that was not asked for, or the address is reached by
            other machines.
    """
    if tokens:
        return
    if not without_tokens:
        raise InputError(
            "There are no bearer tokens. Give --tokens FILE, or --without-tokens to serve this "
            "machine only."
        )
    if not is_loopback(host):
        raise InputError(
            f"--host {host} is reached by other machines, and there are no bearer tokens. Give "
            "--tokens FILE, or a loopback address such as 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, for this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _sent_by_a_page(headers: Headers) -> str:
    """Return why a request may be some web page's; empty where it is not."""
    if not is_loopback(_host(headers.get("host", ""))):
        return "Without tokens the service answers on a loopback address only."
    # Browsers name it with every POST, whatever its content type; "null" hides whose it is.
    origin = headers.get("origin")
    if origin is not None and not is_loopback(_host(origin.partition("://")[2])):
        return "Without tokens the service answers no page of another host."
    return ""


def _host(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
