"""The page's files over HTTP: what a browser may do with them, and keep of them."""

from __future__ import annotations

import pytest

from tests.serve.service.helpers import Served

FILES = ["/", "/page/main.js", "/page/style.css"]


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_has_not_changed_is_not_sent_again(service: Served, path: str) -> None:
    with service.client(None) as client:
        first = client.get(path)
        tag = first.headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            again = client.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
            assert again.headers["cache-control"] == "no-cache"
        for other in ('"other"', tag.strip('"'), ""):
            whole = client.get(path, headers={"If-None-Match": other})
            assert (whole.status_code, whole.content) == (200, first.content)


def test_files_with_different_content_have_different_tags(service: Served) -> None:
    with service.client(None) as client:
        tags = {client.get(path).headers["etag"] for path in FILES}
    assert len(tags) == len(FILES)


@pytest.mark.parametrize("path", ["/page/none.js", "/page/a/b.js", "/page/%2e%2e/cli.py"])
def test_what_the_page_has_not_is_told_under_the_page_s_policy(service: Served, path: str) -> None:
    with service.client(None) as client:
        page, missing = client.get("/"), client.get(path)
    assert missing.status_code == 404
    assert missing.json()["status"] == 404
    for name in ("content-security-policy", "x-content-type-options"):
        assert missing.headers[name] == page.headers[name]


def test_the_docs_are_asked_for_anew_after_an_upgrade(service: Served) -> None:
    with service.client(None) as client:
        assert client.get("/docs").headers["cache-control"] == "no-cache"
