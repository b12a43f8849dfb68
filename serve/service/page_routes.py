"""The pages at ``/`` and ``/docs``: files of the package, which load nothing from any other host.

FastAPI's own page at ``/docs`` loads its scripts from a CDN, so that it is blank offline.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from casewright.serve.service.problems import RefusedError

if TYPE_CHECKING:
    from starlette.types import Scope

#: Path to the page's file.
_PAGES = {"/": "index.html", "/docs": "docs.html"}
#: Content types, which do not depend on the system's table of file names.
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: No other host, no script but the package's, and no HTML made from text.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Other versions of the package have other files of the same names: browsers revalidate them.
    "Cache-Control": "no-cache",
}


class _Page(StaticFiles):
    """The page's files and errors, with the headers of its policy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            raise RefusedError(error.status_code, "The page has no such file.", _HEADERS) from error
        response.headers.update(_HEADERS)
        kind = _TYPES.get(path.rpartition(".")[2])
        if kind is not None and response.status_code == 200:
            response.headers["Content-Type"] = f"{kind}; charset=utf-8"
        return response


def add_page(app: FastAPI) -> None:
    """Serve the pages at their own paths, and all their files below ``/page``."""
    page = _Page(directory=str(files("casewright.serve").joinpath("page")))
    for path, file in _PAGES.items():
        app.add_api_route(
            path, _serving(page, file), methods=["GET", "HEAD"], include_in_schema=False
        )
    app.mount("/page", page)


def _serving(page: _Page, file: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return await page.get_response(file, request.scope)

    return serve
