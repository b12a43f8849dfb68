"""The pages at ``/`` and ``/docs``: files of the package, which load nothing from other hosts.

FastAPI's own page at ``/docs`` loads its scripts from a CDN: offline it is blank.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from casewright.serve.service.problems import RefusedError

#: Path to the file of its page.
_PAGES = {"/": "index.html", "/docs": "docs.html"}
#: Content types by suffix, independent of the system's table.
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: The policy of the pages: no other host, only the package's scripts, no HTML made from text.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Browsers revalidate the files, since other versions have other files of the same names.
    "Cache-Control": "no-cache",
}


class _Page(StaticFiles):
    """The pages' files and errors, with the headers of the policy."""

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


def add_page(app: FastAPI) -> None:
    """Serve the pages at their own paths, and all their files below ``/page``."""
    page = _Page(directory=str(files("casewright.serve").joinpath("page")))

    async def serve(request: Request) -> Response:
        return await page.get_response(_PAGES[request.scope["route"].path], request.scope)

    for path in _PAGES:
        app.add_api_route(path, serve, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/page", page)
