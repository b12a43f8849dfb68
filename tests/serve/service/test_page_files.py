"""The page's files over HTTP: their ETags, caching and security headers."""

from __future__ import annotations

import pytest

from tests.serve.service.helpers import Served

FILES = ["/", "/page/main.js", "/page/style.css"]


@pytest.mark.parametrize("path", FILES)
def test_unchanged_page_file_is_answered_with_304(service: Served, path: str) -> None:
    with service.client(None) as client:
        first = client.get(path)
        tag = first.headers["etag"]
        for condition in (tag, f"W/{tag}", f'"other", {tag}'):
            response = client.get(path, headers={"If-None-Match": condition})
            assert (response.status_code, response.content) == (304, b"")
            assert response.headers["etag"] == tag
            assert response.headers["cache-control"] == "no-cache"
        for condition in ('"other"', tag.strip('"'), ""):
            response = client.get(path, headers={"If-None-Match": condition})
            assert (response.status_code, response.content) == (200, first.content)


def test_page_files_with_different_content_have_different_etags(service: Served) -> None:
    with service.client(None) as client:
        tags = {client.get(path).headers["etag"] for path in FILES}
    assert len(tags) == len(FILES)


@pytest.mark.parametrize("path", ["/page/none.js", "/page/a/b.js", "/page/%2e%2e/cli.py"])
def test_missing_page_file_has_the_same_security_headers_as_the_page(
    service: Served, path: str
) -> None:
    with service.client(None) as client:
        page, missing = client.get("/"), client.get(path)
    assert missing.status_code == 404
    assert missing.json()["status"] == 404
    for name in ("content-security-policy", "x-content-type-options"):
        assert missing.headers[name] == page.headers[name]


def test_docs_page_is_sent_with_cache_control_no_cache(service: Served) -> None:
    with service.client(None) as client:
        assert client.get("/docs").headers["cache-control"] == "no-cache"
