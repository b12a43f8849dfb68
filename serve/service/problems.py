"""Turns errors into problem documents (RFC 9457), without file paths of this machine."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from casewright import errors
from casewright.errors import CasewrightError

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("casewright.service")

# A file path, quoted or not, or a file URL, but no web address.
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
_STATUS_TEXTS = {
    400: "The request is malformed; or, without tokens, its Host or Origin is no loopback address.",
    401: "The bearer token is missing, unknown or expired.",
    404: "The resource does not exist, or is another tenant's.",
    409: "The present state does not allow the request.",
    413: "The request is too large.",
    422: "The request is well-formed, but invalid.",
    500: "A defect of the service.",
    503: "Too many requests or tool calls are at work, or a store does not answer.",
    504: "The request exceeded its time.",
}


class RefusedError(CasewrightError):
    """A refused request, with the status and the headers of its response."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def problem(status: int, detail: str, **fields: Any) -> dict[str, Any]:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **fields}


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **fields: Any
) -> Response:
    """Return a response with a problem document."""
    # The body is ASCII, since the detail may be invalid Unicode.
    body = json.dumps(problem(status, detail, **fields))
    return Response(body, status, dict(headers or {}), MEDIA_TYPE)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's error responses for these statuses and for the middleware's."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _STATUS_TEXTS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({400, 401, 413, 422, 503, 504, *statuses})
    }


def without_paths(text: str) -> str:
    """Return a text in which an ellipsis replaces every file path."""
    return _PATH.sub("…", text)


def paths_in(texts: Iterable[str]) -> set[str]:
    """Return the file paths in texts."""
    return {path for text in texts for path in _PATH.findall(text)}


def redact(text: str, paths: Iterable[str]) -> str:
    """Return a text in which an ellipsis replaces each of the paths."""
    for path in sorted(paths, key=len, reverse=True):
        # A short path within a word, such as /h in km/h, stays.
        text = re.sub(rf"(?<!\w){re.escape(path)}(?!\w)", "…", text)
    return text


def answer_without_paths(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without the file paths that occur in its tools' errors."""
    paths = paths_in(str(step["error"]) for step in answer["steps"] if step["error"])
    if not paths:
        return dict(answer)
    return {
        **answer,
        "text": redact(answer["text"], paths),
        "missing": [redact(text, paths) for text in answer["missing"]],
        "steps": [{**step, "error": redact(str(step["error"]), paths)} for step in answer["steps"]],
    }


def status_and_detail(error: BaseException) -> tuple[int, str]:
    """Return an error's status, and its detail without private data; log what is left out."""
    match error:
        case RefusedError():
            return error.status, str(error)
        case errors.InputError():
            return 422, without_paths(str(error))
        case errors.BusyError():
            log.warning("A request was refused: %s", error)
            return 503, "Too many tool calls are at work. Try again in a moment."
        case errors.StoreDamagedError():
            log.error("Stored data is damaged: %s", error)
            return 500, without_paths(str(error))
        case errors.StoreUnavailableError() | errors.StoreLockedError():
            log.warning("A store does not answer: %s", error)
            return 503, "A case store does not answer. Try again in a moment."
        case _ if _has_class_name(error, "OperationalError") and not _is_sqlite_defect(error):
            # An error of SQLite or PostgreSQL, by the class's name: psycopg may not be installed.
            log.warning("The threads' database does not answer: %s", error)
            return 503, "The threads' database does not answer. Try again in a moment."
        case _ if _has_class_name(error, "DatabaseError"):
            log.error("The threads' database is damaged: %s", error)
            return 500, "The threads' database is damaged; see the service's log."
        case TimeoutError():
            return 504, "The answer took longer than a request may. Ask something smaller."
    log.error("A request failed: %s", error, exc_info=error)
    return 500, "The service failed to answer; see its log."


def _has_class_name(error: BaseException, name: str) -> bool:
    return any(base.__name__ == name for base in type(error).__mro__)


def _is_sqlite_defect(error: BaseException) -> bool:
    """Return ``True`` if SQLite reports a wrong statement or file, not a failed disk or lock."""
    code = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    return type(error).__module__ == "sqlite3" and code == "SQLITE_ERROR"


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error of a route with a problem document."""

    async def on_error(request: Request, error: Exception) -> Response:
        status, detail = status_and_detail(error)
        headers = error.headers if isinstance(error, RefusedError) else {}
        if status == 503:
            headers = {"Retry-After": "1", **headers}
        return problem_response(status, detail, headers)

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, (RequestValidationError, ValidationError))
        fields = [_invalid_field(entry) for entry in error.errors()]
        return problem_response(422, invalid_detail(error.errors()), errors=fields[:20])

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405 and (methods := _allowed_methods(app, request)):
            # Starlette lists only the methods of the path's first route.
            headers["Allow"] = ", ".join(sorted(methods))
        return problem_response(error.status_code, without_paths(str(error.detail)), headers)

    app.add_exception_handler(CasewrightError, on_error)
    app.add_exception_handler(TimeoutError, on_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    # LangServe itself validates a batch's inputs, and raises pydantic's own error.
    app.add_exception_handler(ValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http_error)


def _allowed_methods(app: FastAPI, request: Request) -> set[str]:
    """Return the methods that OpenAPI lists for the path of a request."""
    paths = app.openapi()["paths"]
    templates = matching_templates(app, request.scope["path"])
    return {method.upper() for template in templates for method in paths[template]}


def matching_templates(app: FastAPI, path: str) -> Iterator[str]:
    """Yield the path templates in OpenAPI that match a path."""
    for template in app.openapi()["paths"]:
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path):
            yield template


def invalid_detail(entries: Sequence[Any]) -> str:
    """Return a message about pydantic's errors in a request, without the request's values."""
    fields = [_invalid_field(entry) for entry in entries[:3]]
    messages = "; ".join(f"{field['at'] or 'body'}: {field['message']}" for field in fields)
    return f"The request does not fit the schema: {messages}."


def _invalid_field(error: Any) -> dict[str, str]:
    """Return the position and the message of a pydantic error, without its input."""
    if not isinstance(error, Mapping):
        return {"at": "", "message": str(error)}
    position = ".".join(str(part) for part in error.get("loc", ()))
    return {"at": position[:200], "message": str(error.get("msg", ""))[:300]}


class ErrorBoundary:
    """Middleware that answers uncaught errors with a problem document, and closes no connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer an uncaught error unless the response has begun."""
        response_has_begun = False

        async def record_and_send(message: Message) -> None:
            nonlocal response_has_begun
            response_has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, record_and_send)
        except Exception as error:
            if scope["type"] != "http" or response_has_begun:
                raise
            await problem_response(*status_and_detail(error))(scope, receive, send)
