"""`--tenant` sets the tenant on the command line, as a token does in the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import new_home, one_line_error, result, run

FILE = '''
from casewright.domains import own_domain
from casewright.tools import Tenant, Toolbox, tool_from_function


def find_row(query: str, tenant: Tenant) -> str:
    """Finds a row of the table."""
    return f"{tenant}'s row"


toolbox = Toolbox([tool_from_function(find_row)])
domain = own_domain("rows", toolbox, {"which row": "s1 = find_row(query=question)"})
'''


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = new_home(tmp_path_factory.mktemp("tenant"))
    (home / "rows.py").write_text(FILE)
    return home


def test_tools_are_given_the_tenant_that_the_command_names(own_home: Path) -> None:
    asked = ("ask", "which row", "--domain", "rows.py:domain", "--json")
    answer = result(run(own_home, *asked, "--tenant", "acme"))
    assert answer["steps"][0]["rows"] == [{"evidence": "acme's row"}]
    step = result(run(own_home, *asked))["steps"][0]
    assert step["status"] == "failed"
    assert "--tenant" in step["error"]
    assert "no scope field 'tenant'" in one_line_error(run(own_home, *asked, "--scope", "tenant=a"))
    assert one_line_error(run(own_home, *asked, "--tenant", " ")).startswith("--tenant is empty")


def test_chat_passes_the_option_tenant_to_tools(own_home: Path) -> None:
    asked = ("chat", "--domain", "rows.py:domain", "--json", "--tenant", "bolt")
    assert "bolt's row" in run(own_home, *asked, typed="which row\n").stdout
