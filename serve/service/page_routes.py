"""Serves the pages at ``/`` and ``/docs``, which load nothing from other hosts.

FastAPI's own page at ``/docs`` is blank offline, since it loads scripts from a CDN.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from casewright.serve.service.problems import RefusedError

#: The file of each page, by the page's path.
_PAGES = {"/": "index.html", "/docs": "docs.html"}
#: Content types of files, by suffix; the system's own table may lack them.
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: Headers of the pages and their files. Pages load only the package's files; their scripts cannot
#: parse text as HTML.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Browsers must revalidate the files, since another version has other files of the same names.
    "Cache-Control": "no-cache",
}


class _PageFiles(StaticFiles):
    """Serves the files of the pages; files and refusals have the headers ``_HEADERS``."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            raise RefusedError(error.status_code, "The page has no such file.", _HEADERS) from error
        response.headers.update(_HEADERS)
        content_type = _TYPES.get(path.rpartition(".")[2])
        if content_type is not None and response.status_code == 200:
            response.headers["Content-Type"] = f"{content_type}; charset=utf-8"
        return response


def add_pages(app: FastAPI) -> None:
    """Serve each page at its path in ``_PAGES``, and all files of the pages below ``/page``."""
    page_files = _PageFiles(directory=str(files("casewright.serve").joinpath("page")))

    async def serve(request: Request) -> Response:
        return await page_files.get_response(_PAGES[request.scope["route"].path], request.scope)

    for path in _PAGES:
        app.add_api_route(path, serve, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/page", page_files)
