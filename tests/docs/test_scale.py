"""The code of docs/scale.md runs as it is printed, against a server of the tests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import certifi
import pytest

from tests.support.qdrant_server import QdrantServer

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SERVERS = re.compile(r"https?://(?:localhost|qdrant\.example\.com):6333")


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_snippets_of_the_page_run_in_order_and_print_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QDRANT_API_KEY", "a key")
    shutil.copy(certifi.where(), "authority.pem")
    namespace: dict[str, object] = {}
    assert len(SNIPPETS) > 2
    with QdrantServer() as server:
        for number, snippet in enumerate(SNIPPETS):
            exec(compile(SERVERS.sub(server.url, snippet), f"snippet {number}", "exec"), namespace)
            assert capsys.readouterr().out.strip(), f"snippet {number} prints nothing"
        keys = [request.headers.get("api-key") for request in server.requests]
    assert "a key" in keys


def test_page_names_the_defaults_of_the_server_options() -> None:
    from casewright.stores.engines.server_options import ServerOptions

    options = ServerOptions()
    for name in ("upload_batch", "parallel", "retries"):
        assert f"`{name}` ({getattr(options, name)})" in PAGE
