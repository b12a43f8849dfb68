"""The code of docs/embedding.md runs as it is printed, against an MCP server of the tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

# Before the tests: the client's module keeps the stderr of its import.
pytest.importorskip("langchain_mcp_adapters.tools", reason="the extra mcp is not installed")

PAGE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SERVER = '''
from mcp.server.fastmcp import FastMCP
server = FastMCP("plant", log_level="ERROR")

@server.tool()
def find(query: str, hall: str) -> str:
    """Finds a machine."""
    return f"{query} in hall {hall}"

server.run("stdio")
'''
#: A text in the output of each snippet.
OUTPUTS = (
    "M7: 61 °C [E2]",
    "lathe 7, hall B [E1]",
    "- M7: 61 °C [E2]\ndone",
    "[2, 2]",
    "Oil it weekly. [E1]",
    "'find(query: ",
)


def test_snippets_of_the_page_run_in_order_and_print_the_expected_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "embedding"}
    assert len(SNIPPETS) == len(OUTPUTS)
    for number, (snippet, line) in enumerate(zip(SNIPPETS, OUTPUTS, strict=True)):
        code = snippet.replace('"command": "python"', f'"command": {sys.executable!r}')
        exec(compile(code, f"snippet {number}", "exec"), namespace)
        assert line in capfd.readouterr().out, f"snippet {number}"


def test_page_documents_every_field_of_the_run_context() -> None:
    from dataclasses import fields

    from casewright.graph import RunContext

    table = PAGE[PAGE.index("| field |") : PAGE.index("The smaller of the graph's")]
    assert all(f"`{field.name}`" in table for field in fields(RunContext))
