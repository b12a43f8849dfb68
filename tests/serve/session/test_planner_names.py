"""Names of planners: the planners that they make, and the settings that they accept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unicodedata import category

import pytest

from casewright.errors import InputError
from casewright.finetune.baselines.classifiers import ClassifierPlanner
from casewright.graph.step_agent import AgentPlanner
from casewright.planner import PlanRequest, parse_plan, plan_store
from casewright.planner.named import ModelSettings, local_model, make_planner
from casewright.stores import CaseStore
from tests.planner.helpers import SHOP
from tests.serve.helpers import built_home, one_line_error, result, run
from tests.support.encoders import HashingEncoder
from tests.support.readers import toy_queries
from tests.support.tiny_mistral import save_tiny

QUESTION = "Where is my tablet?"
#: Invalid options, and a part of their error message.
INVALID_OPTIONS: dict[str, tuple[list[str], str]] = {
    "unknown planner": (["--planner", "clasifiers"], "agent:local:FOLDER, case, classifiers"),
    "an agent without a model": (["--planner", "agent:"], "names no model"),
    "an agent of another kind": (["--planner", "agent:openai:x"], "agent:local:FOLDER"),
    "an agent without a folder": (["--planner", "agent:local:"], "names no model"),
    "missing folder of an agent": (["--planner", "agent:local:./nowhere"], "no folder './nowhere'"),
    "no grammar of the case planner": (["--no-grammar"], "no grammar to switch off"),
    "no grammar of an agent": (["--planner", "agent:local:x", "--no-grammar"], "to switch off"),
    "no grammar of a chat model": (["--planner", "a:b", "--no-grammar"], "to switch off"),
    "a device for classifiers": (["--planner", "classifiers", "--device", "cpu"], "no local model"),
    "examples for classifiers": (["--planner", "classifiers", "--examples", "1"], "no prompt"),
    "an adapter for mistral": (["--planner", "mistral", "--adapter", "x"], "an adapter itself"),
    "an agent of mistral": (["--planner", "agent:mistral"], "agent:local:FOLDER"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(
        tmp_path_factory.mktemp("model"), initializer_range=0.3, max_position_embeddings=8192
    )


@pytest.fixture(scope="module")
def plan_cases() -> CaseStore:
    return plan_store(toy_queries(), HashingEncoder(64))


@pytest.mark.parametrize("case", INVALID_OPTIONS)
def test_invalid_planner_or_model_options_print_one_line_with_exit_code_2(
    case: str, tmp_path: Path
) -> None:
    arguments, message = INVALID_OPTIONS[case]
    assert message in one_line_error(run(tmp_path, "plan", "hello", *arguments))


def test_plan_without_grammar_prints_the_text_that_the_model_wrote(folder: Path) -> None:
    options = ["--planner", f"local:{folder}", "--no-grammar", "--examples", "0"]
    planned = result(run(built_home(), "plan", QUESTION, *options, "--json"))
    # A model with random weights writes no valid plan.
    assert ", grammar off: " in planned["fallback"]
    assert planned["written"]
    assert parse_plan(planned["plan"]).tools
    completed = run(built_home(), "plan", QUESTION, *options)
    assert completed.stdout == planned["plan"] + "\n"
    assert "The planner wrote:\n" in completed.stderr
    assert not {char for char in completed.stderr if category(char) in ("Cc", "Cf", "Cs")} - {"\n"}


def test_agent_planner_returns_a_valid_plan_without_fallback(folder: Path) -> None:
    options = ["--planner", f"agent:local:{folder}"]
    planned = result(run(built_home(), "plan", QUESTION, *options, "--json"))
    assert planned["planner"] == f"agent:{folder}"
    assert planned["fallback"] is planned["written"] is None
    assert parse_plan(planned["plan"]).tools


def test_planners_of_one_model_share_the_loaded_model(folder: Path) -> None:
    name, settings = f"local:{folder}", ModelSettings(examples=1)
    loaded = local_model(name, settings)
    assert local_model(name, replace(settings, constrained=False, examples=None)) is loaded
    assert local_model(f"agent:{name}", settings) is loaded


def test_make_planner_makes_agent_model_and_classifier_planners_by_name(
    folder: Path, plan_cases: CaseStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_HOME", str(tmp_path))
    agent = make_planner(f"agent:local:{folder}", plan_cases, scope={"customer": "C001"})
    assert isinstance(agent, AgentPlanner)
    model = make_planner(f"local:{folder}", plan_cases, None, ModelSettings(constrained=False))
    assert model.name == f"model:{folder}, grammar off"
    encoder = HashingEncoder(64)
    classifiers = make_planner("classifiers", plan_cases, queries=toy_queries, encoder=encoder)
    assert isinstance(classifiers, ClassifierPlanner)
    request = PlanRequest("do you sell wool socks", SHOP)
    assert classifiers.plan(request).plan.tools == ("find",)


def test_classifiers_need_annotated_queries(plan_cases: CaseStore) -> None:
    for queries in (None, list):
        with pytest.raises(InputError, match="learns from annotated queries"):
            make_planner("classifiers", plan_cases, queries=queries)
