"""Authenticates requests; the bearer token alone determines a request's tenant."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from casewright.errors import InputError
from casewright.serve.service.problems import problem_response
from casewright.serve.settings.tokens import Grant

#: Minimum interval between checks for changed tokens.
CHECK_SECONDS = 1.0
#: Tenant of all requests of a service without tokens.
LOCAL_TENANT = "local"
#: Paths without authentication: health, documentation and the page.
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/docs", "/openapi.json"})
#: Prefix of the paths of the page's files, which need no authentication either.
PAGE_PREFIX = "/page/"


def tenant_of(scope: Scope) -> str:
    """Return the tenant of an authenticated request."""
    # An unauthenticated request has no tenant, and fails here.
    return str(scope["state"]["tenant"])


class Tokens:
    """Finds the tenant of a token; the object is false if the service started without tokens.

    A request's token is compared with all tokens in constant time, by digest. ``changed_tokens``
    returns the tokens if they have changed, else ``None``; it is called at most once per second.
    """

    def __init__(
        self,
        tokens: Mapping[str, Grant],
        changed_tokens: Callable[[], Mapping[str, Grant] | None] = lambda: None,
    ) -> None:
        self._are_required = bool(tokens)
        self._changed_tokens = changed_tokens
        self._checked_at = time.monotonic()
        self._set_grants(tokens)

    def __bool__(self) -> bool:
        return self._are_required

    def tenant(self, token: str) -> str | None:
        """Return a token's tenant; ``None`` if the token is unknown or has expired."""
        if (now := time.monotonic()) - self._checked_at >= CHECK_SECONDS:
            self._checked_at = now
            if (tokens := self._changed_tokens()) is not None:
                self._set_grants(tokens)
        digest, found_grant = _digest(token), None
        for token_digest, grant in self._grants:
            if hmac.compare_digest(token_digest, digest):
                found_grant = grant
        if found_grant is None:
            return None
        is_expired = found_grant.expires and found_grant.expires <= datetime.now(UTC)
        return None if is_expired else found_grant.tenant

    def _set_grants(self, tokens: Mapping[str, Grant]) -> None:
        self._grants = [(_digest(token), grant) for token, grant in tokens.items()]


class Authentication:
    """Middleware that refuses requests without a known token, before their body is read.

    Without tokens, every request has the tenant ``local``, and a request is refused if its ``Host``
    (DNS rebinding) or ``Origin`` is no loopback address: a foreign web page may have sent it.
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
            if reason := _foreign_page_reason(headers):
                await problem_response(400, reason)(scope, receive, send)
                return
            state["tenant"] = LOCAL_TENANT
        elif not is_open(scope):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            tenant = self._tokens.tenant(token.strip()) if scheme.lower() == "bearer" else None
            if tenant is None:
                detail = "Send a known token that has not expired: Authorization: Bearer TOKEN."
                refusal = problem_response(401, detail, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
            state["tenant"] = tenant
        await self._app(scope, receive, send)


def is_open(scope: Scope) -> bool:
    """Return ``True`` if a request needs no authentication."""
    path = scope["path"]
    is_public = path in OPEN_PATHS or path.startswith(PAGE_PREFIX)
    return is_public and scope["method"] in ("GET", "HEAD")


def check_exposure(host: str, tokens: Mapping[str, Grant], *, without_tokens: bool) -> None:
    """Without tokens, raise ``InputError`` unless the flag is set and ``host`` is loopback."""
    if tokens:
        return
    if not without_tokens:
        raise InputError(
            "There are no bearer tokens. Give --tokens FILE, or --without-tokens to serve this "
            "machine only."
        )
    if not is_loopback(host):
        raise InputError(
            f"Other machines can reach --host {host}, and there are no bearer tokens. Give "
            "--tokens FILE, or a loopback address such as 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Return ``True`` if only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _foreign_page_reason(headers: Headers) -> str:
    """Return the reason to refuse a request of a foreign web page; empty for other requests."""
    if not is_loopback(_host_name(headers.get("host", ""))):
        return "Without tokens the service answers on a loopback address only."
    # Browsers send Origin with every POST; "null", for an undisclosed page, is refused.
    origin = headers.get("origin")
    if origin is not None and not is_loopback(_host_name(origin.partition("://")[2])):
        return "Without tokens the service answers no web page of another host."
    return ""


def _host_name(host_and_port: str) -> str:
    if host_and_port.startswith("["):
        return host_and_port[1:].partition("]")[0]
    return host_and_port.partition(":")[0].lower()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
