"""The page at ``/``: files of the package, which load nothing from any other host."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from casewright.serve.service.problems import RefusedError

router = APIRouter(include_in_schema=False)
#: What a browser is told that each is: what the system knows of file names differs.
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: No other host, no script but the package's, and none may make HTML of text.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A newer version of the package has other files of the same names: the browser asks again, by
    # the tag of what it has.
    "Cache-Control": "no-cache",
}


class _Part(NamedTuple):
    """A file of the page, what it is, and what tells its content from any other."""

    body: bytes
    media_type: str
    tag: str


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """Return the page."""
    return _reply("index.html", request)


@router.api_route("/page/{name:path}", methods=["GET", "HEAD"])
async def part(name: str, request: Request) -> Response:
    """Return a file of the page."""
    return _reply(name, request)


def _reply(name: str, request: Request) -> Response:
    if name not in _parts():
        raise RefusedError(404, "The page has no such file.", _HEADERS)
    one = _parts()[name]
    headers = {**_HEADERS, "ETag": one.tag}
    if _known(request.headers.get("if-none-match", ""), one.tag):
        return Response(None, 304, headers)
    return Response(one.body, 200, headers, one.media_type)


def _known(header: str, tag: str) -> bool:
    """Say whether a browser has what it asks for: ``If-None-Match`` names it."""
    told = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tag in told or told == ["*"]


@cache
def _parts() -> dict[str, _Part]:
    """Return every file; read once, when the first is asked for."""
    return {
        one.name: _part(one.read_bytes(), _TYPES[one.name.rpartition(".")[2]])
        for one in files("casewright.serve").joinpath("page").iterdir()
        if one.name.rpartition(".")[2] in _TYPES
    }


def _part(body: bytes, media_type: str) -> _Part:
    return _Part(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
