"""The page at ``/``: files of the package, which load nothing from any other host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Response

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
    # A newer version of the package has other files of the same names.
    "Cache-Control": "no-cache",
}


@router.get("/")
async def page() -> Response:
    """Return the page."""
    return _reply("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """Return a file of the page."""
    return _reply(name)


def _reply(name: str) -> Response:
    if name not in _parts():
        raise RefusedError(404, "The page has no such file.")
    body, media_type = _parts()[name]
    return Response(body, 200, _HEADERS, media_type)


@cache
def _parts() -> dict[str, tuple[bytes, str]]:
    """Return every file's bytes and type; read once, when the first is asked for."""
    return {
        one.name: (one.read_bytes(), _TYPES[one.name.rpartition(".")[2]])
        for one in files("casewright.serve").joinpath("page").iterdir()
        if one.name.rpartition(".")[2] in _TYPES
    }
