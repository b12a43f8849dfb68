"""The planners `mistral` and `smollm2`, and the default planner."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casewright.domains import domain_names, find_domain, own_domain
from casewright.planner import parse_plan, shipped
from casewright.planner.language_model.smollm2 import DISTRIBUTION, INSTALL
from casewright.planner.named import ModelSettings, check_planner
from casewright.planner.shipped import SHIPPED
from casewright.serve.session.defaults import default_planner
from tests.planner.helpers import SHOP
from tests.serve.helpers import built_home, one_line_error, result, run
from tests.support.tiny_adapter import save_tiny_adapter

QUESTION = "Where is my tablet?"
#: A user's domain with tools and without plan cases.
PLANT = '''
from casewright.domains import own_domain
from casewright.tools import Toolbox, tool_from_function


def find_machine(query: str) -> str:
    """Finds a machine of this plant."""
    return f"{query}: hall B"


domain = own_domain("plant", Toolbox([tool_from_function(find_machine)]))
'''


@pytest.fixture
def small_mistral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the shipped adapter by one of a tiny model; return its folder."""
    folder = save_tiny_adapter(tmp_path, data={"manifest": {"data": {"tevo": {"shots": 1}}}})
    monkeypatch.setattr(shipped, "FOLDER", folder)
    return folder


@pytest.fixture
def no_base(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home where the base model is neither converted nor installed."""
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", str(home / "empty"))
    list_files = importlib.metadata.files

    def files(name: str) -> Any:
        if name == DISTRIBUTION:
            raise importlib.metadata.PackageNotFoundError(name)
        return list_files(name)

    monkeypatch.setattr(importlib.metadata, "files", files)
    return home


def test_shipped_model_plans_the_same_by_its_name_as_by_its_folder(small_mistral: Path) -> None:
    by_name = ["--planner", "mistral", "--device", "cpu", "--dtype", "float32"]
    planned = result(run(built_home(), "plan", QUESTION, *by_name, "--json"))
    assert (planned["planner"], planned["fallback"]) == ("model:mistral", None)
    # The model card sets the number of plan cases in the prompt.
    for flags in (["--planner", f"local:{small_mistral}"], ["--adapter", str(small_mistral)]):
        other = result(run(built_home(), "plan", QUESTION, *flags, "--dtype", "float32", "--json"))
        assert (other["plan"], other["planner"]) == (planned["plan"], f"model:{small_mistral}")


def test_option_adapter_overrides_the_planner_of_the_settings(
    small_mistral: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PLANNER", "case")
    options = ["--examples", "0", "--json"]
    completed = run(built_home(), "plan", QUESTION, "--adapter", str(small_mistral), *options)
    assert result(completed)["planner"] == f"model:{small_mistral}"


def test_shipped_model_can_be_used_without_its_grammar(small_mistral: Path) -> None:
    options = ["--planner", "mistral", "--no-grammar", "--examples", "0", "--json"]
    planned = result(run(built_home(), "plan", QUESTION, *options))
    assert planned["fallback"].startswith("model:mistral, grammar off: ")


def test_shipped_model_plans_for_own_tools_and_is_named_in_the_answer(
    small_mistral: Path, home: Path
) -> None:
    (home / "plant.py").write_text(PLANT, encoding="utf-8")
    options = ["--domain", "plant.py:domain", "--planner", "mistral"]
    planned = result(run(home, "plan", "where is the mill", *options, "--json"))
    assert (planned["planner"], planned["fallback"]) == ("model:mistral", None)
    completed = run(home, "ask", "where is the mill", *options)
    assert "Planned by model:mistral in " in completed.stdout, completed.stderr


def test_shipped_model_plans_for_the_shop() -> None:
    plans = {
        QUESTION: 's1 = order_lookup(query="tablet")\ns2 = shipment_status(order_id=s1.order_id)',
        "thanks a lot, bye": "s1 = no_evidence()",
        "can I return it after a month": "s1 = customer_support(query=question)",
    }
    file = built_home() / "asked.jsonl"
    file.write_text("\n".join(json.dumps({"id": q, "query": q}) for q in plans), encoding="utf-8")
    completed = run(built_home(), "plan", "--input", "asked.jsonl", "--planner", "mistral")
    assert completed.returncode == 0, completed.stderr
    records = map(json.loads, completed.stdout.splitlines())
    assert {record["id"]: record["plan"] for record in records} == plans


@pytest.mark.parametrize("name", ["smollm2", "local:smollm2"])
def test_untuned_base_model_plans_by_its_name(name: str) -> None:
    planned = result(run(built_home(), "plan", QUESTION, "--planner", name, "--json"))
    assert (planned["planner"], planned["fallback"]) == ("model:smollm2", None)
    assert parse_plan(planned["plan"]).tools


def test_missing_shipped_model_prints_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    message = one_line_error(run(tmp_path, "plan", QUESTION, "--planner", "mistral"))
    assert "is not in this installation" in message


@pytest.mark.parametrize("planner", ["mistral", "smollm2", "local:smollm2", "agent:local:smollm2"])
@pytest.mark.parametrize("command", ["plan", "ask"])
def test_error_of_a_missing_base_model_names_the_command_that_installs_it(
    command: str, planner: str, no_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", save_tiny_adapter(tmp_path, "smollm2"))
    # This process may still hold a model that another test loaded, but not in float16.
    options = ["--planner", planner, "--dtype", "float16"]
    message = one_line_error(run(no_base, command, QUESTION, *options))
    assert message.endswith(f"Run: {INSTALL}")


def test_default_planner_is_the_planner_of_the_domain_if_it_can_run(
    small_mistral: Path, no_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = replace(find_domain("shopping"), planner=SHIPPED)
    assert default_planner(shop) == "case"
    monkeypatch.undo()
    monkeypatch.setattr(shipped, "FOLDER", small_mistral)
    assert default_planner(shop) == SHIPPED
    assert default_planner(find_domain("legal")) == "case"
    (small_mistral / "casewright.json").unlink()
    assert default_planner(shop) == "case"


def test_default_planner_of_own_tools_depends_on_installed_model_and_reader(
    tmp_path: Path, no_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_planner(own_domain("plant", SHOP)) == "parser"
    monkeypatch.undo()
    assert default_planner(own_domain("plant", SHOP)) == "ensemble"
    assert default_planner(own_domain("plant", SHOP, reader=tmp_path)) == "case"


@pytest.mark.parametrize("domain", domain_names())
def test_default_planner_of_every_domain_accepts_default_model_settings(domain: str) -> None:
    check_planner(default_planner(find_domain(domain)), ModelSettings())


def test_plan_without_the_option_planner_uses_the_default_planner() -> None:
    expected = default_planner(find_domain("shopping"))
    planned = result(run(built_home(), "plan", QUESTION, "--json"))
    assert planned["planner"] == {"mistral": "model:mistral"}.get(expected, expected)
