"""`--tenant` sets the tenant on the command line, as a token does in the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import new_home, one_line_error, result, run

DOMAIN_FILE = '''
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
    (home / "rows.py").write_text(DOMAIN_FILE)
    return home


def test_option_tenant_sets_the_tenant_of_tools(own_home: Path) -> None:
    ask = ("ask", "which row", "--domain", "rows.py:domain", "--json")
    answer = result(run(own_home, *ask, "--tenant", "acme"))
    assert answer["steps"][0]["rows"] == [{"evidence": "acme's row"}]
    step = result(run(own_home, *ask))["steps"][0]
    assert step["status"] == "failed"
    assert "--tenant" in step["error"]
    assert "no scope field 'tenant'" in one_line_error(run(own_home, *ask, "--scope", "tenant=a"))
    assert one_line_error(run(own_home, *ask, "--tenant", " ")).startswith("--tenant is empty")


def test_chat_passes_the_option_tenant_to_tools(own_home: Path) -> None:
    chat = ("chat", "--domain", "rows.py:domain", "--json", "--tenant", "bolt")
    assert "bolt's row" in run(own_home, *chat, stdin="which row\n").stdout
