"""The planner `mistral`, and who plans where nobody says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.domains import domain_names
from casewright.planner import shipped
from casewright.planner.prompt_hash import prompt_hash
from casewright.planner.shipped import SHIPPED
from casewright.serve.default_planner import PREFERRED, default_planner
from casewright.serve.planners import ModelSettings, check_planner
from tests.serve.helpers import built_home, one_line_error, result, run
from tests.support.tiny_mistral import save_tiny

QUESTION = "Where is my tablet?"


@pytest.fixture
def small_mistral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model in the place of the one that ships."""
    folder = save_tiny(tmp_path, initializer_range=0.3, max_position_embeddings=8192)
    card = {"prompt_hash": prompt_hash(), "examples": 1}
    (folder / "casewright.json").write_text(json.dumps(card), encoding="utf-8")
    monkeypatch.setattr(shipped, "FOLDER", folder)
    return folder


def test_what_ships_plans_by_its_name_as_its_folder_does(small_mistral: Path) -> None:
    by_name = ["--planner", "mistral", "--device", "cpu", "--dtype", "float32"]
    planned = result(run(built_home(), "plan", QUESTION, *by_name, "--json"))
    assert (planned["planner"], planned["fallback"]) == ("model:mistral", None)
    # Its card says how many plan cases it is shown.
    by_folder = ["--planner", f"local:{small_mistral}", "--examples", "1", "--aids"]
    told = result(run(built_home(), "plan", QUESTION, *by_folder, "--json"))
    assert told["plan"] == planned["plan"]


def test_what_ships_can_write_without_its_grammar(small_mistral: Path) -> None:
    chosen = ["--planner", "mistral", "--no-grammar", "--examples", "0", "--json"]
    planned = result(run(built_home(), "plan", QUESTION, *chosen))
    assert planned["fallback"].startswith("model:mistral, grammar off: ")


def test_what_ships_plans_for_the_shop() -> None:
    asked = {
        QUESTION: 's1 = order_lookup(query="tablet")\ns2 = shipment_status(order_id=s1.order_id)',
        "thanks a lot, bye": "s1 = no_evidence()",
        "can I return it after a month": "s1 = customer_support(query=question)",
    }
    file = built_home() / "asked.jsonl"
    file.write_text("\n".join(json.dumps({"id": q, "query": q}) for q in asked), encoding="utf-8")
    ran = run(built_home(), "plan", "--input", "asked.jsonl", "--planner", "mistral")
    assert ran.returncode == 0, ran.stderr
    made = {told["id"]: told["plan"] for told in map(json.loads, ran.stdout.splitlines())}
    assert made == asked


def test_where_nothing_ships_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    said = one_line_error(run(tmp_path, "plan", QUESTION, "--planner", "mistral"))
    assert "is not in this installation" in said


def test_the_default_is_the_preferred_planner_where_it_can_run(
    small_mistral: Path,
) -> None:
    preferred = {"shopping": SHIPPED}
    assert default_planner("shopping", preferred) == SHIPPED
    assert default_planner("legal", preferred) == "case"
    (small_mistral / "casewright.json").unlink()
    assert default_planner("shopping", preferred) == "case"


@pytest.mark.parametrize("domain", domain_names())
def test_every_domain_has_a_default_and_uses_it(domain: str) -> None:
    assert set(PREFERRED) <= set(domain_names())
    # Of what a planner may be given, these go with all.
    check_planner(default_planner(domain), ModelSettings())


def test_who_asks_for_no_planner_gets_the_default() -> None:
    expected = default_planner("shopping")
    planned = result(run(built_home(), "plan", QUESTION, "--json"))
    assert planned["planner"] == {"mistral": "model:mistral"}.get(expected, expected)
