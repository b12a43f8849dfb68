"""Errors as RFC 9457 problem documents: what was wrong, never where in our files it went wrong."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from casewright.errors import (
    BusyError,
    CasewrightError,
    InputError,
    StoreDamagedError,
    StoreLockedError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("casewright.service")

# A file's path, in quotes or without, or a file's URL; an address of the web is none.
_PATH = re.compile(
    r"""(?x)
      (?<=') (?: [/\\~] [^']* [/\\] [^']+ | / [^/'] [^']+ ) (?=')
    | (?<=") (?: [/\\~] [^"]* [/\\] [^"]+ | / [^/"] [^"]+ ) (?=")
    | \b (?: file:/+ | [A-Za-z][\w+.-]{0,20}:/// ) [^\s'"`<>|,;()]+
    | (?<![\w/.]) (?!(?<=:)//) (?:
          (?:~|[A-Za-z]:)? [/\\] (?:[^\s/\\'"`<>|:;,()]+[/\\])+ [^\s'"`<>|:;,()]*
        | (?:~|[A-Za-z]:) [/\\] [^\s/\\'"`<>|:;,()]+
        | / [A-Za-z_.] [^\s/\\'"`<>|:;,()]+
      )
    """
)
_MEANING = {
    400: "The request cannot be read, or without tokens its Host or Origin is no loopback address.",
    401: "There is no bearer token, or it is not known.",
    404: "There is none, or it is another tenant's.",
    409: "It cannot be done in the present state.",
    413: "The request is larger than the service reads.",
    422: "The request is well-formed, and unusable.",
    500: "A defect of the service.",
    503: "Too many requests or calls of tools are under way, or a store does not answer.",
    504: "It took longer than a request may.",
}


class RefusedError(CasewrightError):
    """A request that is refused for a reason of HTTP.

    Attributes:
        status: The response's status.
        headers: The response's own headers.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Return the response that holds a problem."""
    # In ASCII: what was wrong may be text that is no Unicode.
    body = json.dumps(problem(status, detail, **more))
    return Response(body, status, dict(headers or {}), MEDIA_TYPE)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of these statuses; every route has those of the middleware too."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _MEANING[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({400, 401, 413, 422, 503, 504, *statuses})
    }


def without_paths(text: str) -> str:
    """Return a text with every file's path taken out."""
    return _PATH.sub("…", text)


def paths_in(texts: Iterable[str]) -> set[str]:
    """Return the files' paths that stand in texts."""
    return {found for text in texts for found in _PATH.findall(text)}


def without(text: str, hidden: Iterable[str]) -> str:
    """Return a text with these paths taken out."""
    for path in sorted(hidden, key=len, reverse=True):
        # A short one may be a part of what is no path: /h of km/h.
        text = re.sub(rf"(?<!\w){re.escape(path)}(?!\w)", "…", text)
    return text


def answer_without_paths(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer in which no tool's error tells a path of this machine."""
    told = dict(answer)
    hidden = paths_in(str(step["error"]) for step in answer["steps"] if step["error"])
    if hidden:
        told["text"] = without(answer["text"], hidden)
        told["missing"] = [without(text, hidden) for text in answer["missing"]]
        told["steps"] = [
            {**step, "error": without(str(step["error"]), hidden)} for step in answer["steps"]
        ]
    return told


def told(error: BaseException) -> tuple[int, str]:
    """Return an error's status and what may be told of it; the rest is logged."""
    match error:
        case RefusedError():
            return error.status, str(error)
        case InputError():
            return 422, without_paths(str(error))
        case BusyError():
            log.warning("A request was refused: %s", error)
            return 503, "Too many calls of tools are under way. Try again in a moment."
        case StoreDamagedError():
            log.error("What is kept is damaged: %s", error)
            return 500, without_paths(str(error))
        case StoreUnavailableError() | StoreLockedError():
            log.warning("A store does not answer: %s", error)
            return 503, "A case store does not answer. Try again in a moment."
        case _ if _is_of("OperationalError", error) and not _is_no_sql(error):
            # Of SQLite or PostgreSQL, where threads are.
            log.warning("The threads' database does not answer: %s", error)
            return 503, "The threads' database does not answer. Try again in a moment."
        case _ if _is_of("DatabaseError", error):
            log.error("The threads' database is damaged: %s", error)
            return 500, "The threads' database is damaged; the service's log says how."
        case TimeoutError():
            return 504, "The answer took longer than a request may. Ask something smaller."
    log.error("A request failed: %s", error, exc_info=error)
    return 500, "The service failed to answer; its log says why."


def _is_of(name: str, error: BaseException) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)


def _is_no_sql(error: BaseException) -> bool:
    """Say whether SQLite misses a column or a table, or a text is no UTF-8; no disk, no lock."""
    code = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    return type(error).__module__ == "sqlite3" and code == "SQLITE_ERROR"


def install(app: FastAPI) -> None:
    """Answer every error that a route raises by a problem."""

    async def by_meaning(request: Request, error: Exception) -> Response:
        status, detail = told(error)
        headers = error.headers if isinstance(error, RefusedError) else {}
        if status == 503:
            headers = {"Retry-After": "1", **headers}
        return problem_response(status, detail, headers)

    async def unusable(request: Request, error: Exception) -> Response:
        assert isinstance(error, (RequestValidationError, ValidationError))
        errors = [_shown(one) for one in error.errors()]
        detail = "The request does not fit the schema: " + "; ".join(
            f"{one['at'] or 'body'}: {one['message']}" for one in errors[:3]
        )
        return problem_response(422, detail + ".", errors=errors[:20])

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405:
            # Starlette names the methods of the first route of this path alone.
            headers["Allow"] = ", ".join(sorted(_methods(app, request)))
        return problem_response(error.status_code, without_paths(str(error.detail)), headers)

    app.add_exception_handler(CasewrightError, by_meaning)
    app.add_exception_handler(TimeoutError, by_meaning)
    app.add_exception_handler(RequestValidationError, unusable)
    # LangServe validates inputs of a batch by itself.
    app.add_exception_handler(ValidationError, unusable)
    app.add_exception_handler(HTTPException, of_http)


def _methods(app: FastAPI, request: Request) -> set[str]:
    """Return the methods of all routes of a request's path."""
    path = request.scope["path"]
    found: set[str] = set()
    for template, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path):
            found |= {method.upper() for method in methods}
    return found or {"GET"}


def _shown(error: Any) -> dict[str, str]:
    """Return one complaint of pydantic's, without what was given."""
    if not isinstance(error, Mapping):
        return {"at": "", "message": str(error)}
    at = ".".join(str(part) for part in error.get("loc", ()))
    return {"at": at[:200], "message": str(error.get("msg", ""))[:300]}


class Contained:
    """Answers what nobody caught by a problem, and logs it; the connection lives on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if scope["type"] != "http" or begun:
                raise
            status, detail = told(error)
            await problem_response(status, detail)(scope, receive, send)
