"""The bench of latency, and the step-by-step agent that it compares a plan in one call with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.decoding.models import ModelChoice
from casewright.bench.decoding.script import ScriptWriter
from casewright.bench.decoding.tasks import PromptShape
from casewright.bench.latency.measure import LatencyTrial, measure_latency
from casewright.bench.latency.step_agent import CHARACTERS, ROWS, StepAgent, agent_prompt, told
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.graph import Outcome
from casewright.planner import PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel
from casewright.tools import CallContext, Toolbox, tool_from_function
from tests.support.tiny_mistral import tiny_mistral

Bench = dict[str, Any]
SYSTEMS = ("one call", "step agent", "step agent, stateless")


@pytest.fixture(scope="module")
def measured(home: Path) -> Iterator[Report]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_HOME", str(home))
        yield measure_latency(LatencyTrial(model=ModelChoice(size="tiny"), plans=1))


@pytest.fixture(scope="module")
def report(measured: Report) -> Bench:
    read: Bench = json.loads(json.dumps(measured.to_json(), allow_nan=False))
    return read


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return tiny_mistral()


@pytest.fixture(scope="module")
def grammar(model: LanguageModel) -> PlanGrammar:
    return PlanGrammar(model.grammar_tokenizer)


def find_machine(query: str, call: CallContext) -> list[dict[str, str]]:
    """Finds a machine of this plant."""
    if query == "nothing":
        return []
    return [{"machine_id": f"M{n} {query} in {call.scope['hall']}"} for n in range(9)]


def read_sensor(machine_id: str) -> str:
    """The temperature of one machine."""
    return f"{machine_id}: 61 °C"


PLANT = Toolbox(
    [
        tool_from_function(find_machine, results=("machine_id",)),
        tool_from_function(read_sensor, sources={"machine_id": ("step",)}),
    ]
)


def test_agent_asks_the_model_once_more_than_the_plan_has_steps(report: Bench) -> None:
    rows = report["rows"]
    assert [(row["steps"], row["system"]) for row in rows] == [
        (steps, system) for steps in (1, 2, 3, 4) for system in SYSTEMS
    ]
    for row in rows:
        assert row["model_calls"] == (1 if row["system"] == "one call" else row["steps"] + 1)


def test_all_look_up_the_same(report: Bench) -> None:
    figures = report["figures"]
    right = {name: value for name, value in figures.items() if name.startswith("scripted_")}
    assert len(right) == 3
    assert set(right.values()) == {1}


def test_agents_read_more_than_one_call_and_most_where_nothing_is_kept(report: Bench) -> None:
    read = {(row["steps"], row["system"]): row["prompt_tokens"] for row in report["rows"]}
    for steps in (1, 2, 3, 4):
        one, kept, anew = (read[steps, system] for system in SYSTEMS)
        assert one < kept < anew
    assert read[1, "step agent"] < read[4, "step agent"]


def test_report_gives_ratios_and_the_memorys_limit(report: Bench) -> None:
    assert report["bench"] == "latency"
    for name in ("step_agent", "stateless_agent"):
        for end in ("1_steps", "4_steps", "all"):
            assert report["figures"][f"ratio_{name}_over_one_call_model_ms_{end}"] > 0
    for row in report["rows"]:
        assert 0 < row["memory_limit_ms"] < row["model_ms_p50"] <= row["total_ms_p50"]


def test_latency_is_drawn_over_the_number_of_steps(
    measured: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.show(as_json=False, plot=tmp_path / "l.svg")
    drawn = (tmp_path / "l.svg").read_text(encoding="utf-8")
    assert "<svg" in drawn
    assert "over_one_call" in capsys.readouterr().out


@pytest.mark.parametrize("stateless", [False, True])
def test_agent_calls_each_tool_with_what_the_step_before_found(
    model: LanguageModel, grammar: PlanGrammar, stateless: bool
) -> None:
    request = PlanRequest("how warm is the lathe", PLANT)
    lines = ('s1 = find_machine(query="lathe")', "s2 = read_sensor(machine_id=s1.machine_id)")
    scripts = ScriptWriter(model)
    tools = parse_plan("\n".join(lines)).tools
    parts = [
        scripts.script(grammar.next_step(request, tools[:place]), text).choose()
        for place, text in enumerate([*lines, "done"])
    ]
    agent = StepAgent(model, grammar, Decoder(model), stateless=stateless)
    prompt = model.encode(agent_prompt(render_prompt(request)))
    run = agent.run(request, prompt, {"hall": "B"}, parts)
    assert run.plan == "\n".join(lines)
    assert run.model_calls == 3
    assert run.outcomes[0].rows[0] == {"machine_id": "M0 lathe in B"}
    assert run.outcomes[1].arguments == {"machine_id": "M0 lathe in B"}
    assert [outcome.status for outcome in run.outcomes] == ["done", "done"]
    shown = [
        model.tokenizer.encode(told(outcome), add_special_tokens=False) for outcome in run.outcomes
    ]
    if stateless:
        assert run.prompt_tokens > 3 * len(prompt.tail) + 2 * len(shown[0])
    else:
        assert run.prompt_tokens == len(prompt.tail) + sum(map(len, shown))


def test_step_whose_reference_found_nothing_is_skipped_and_the_agent_goes_on(
    model: LanguageModel, grammar: PlanGrammar
) -> None:
    request = PlanRequest("how warm is nothing", PLANT)
    lines = ('s1 = find_machine(query="nothing")', "s2 = read_sensor(machine_id=s1.machine_id)")
    scripts = ScriptWriter(model)
    tools = ("find_machine", "read_sensor")
    parts = [
        scripts.script(grammar.next_step(request, tools[:place]), text).choose()
        for place, text in enumerate([*lines, "done"])
    ]
    agent = StepAgent(model, grammar, Decoder(model))
    run = agent.run(request, model.encode(agent_prompt(render_prompt(request))), {}, parts)
    assert [outcome.status for outcome in run.outcomes] == ["empty", "skipped"]
    assert run.model_calls == 3


@pytest.mark.parametrize("seed", range(3))
def test_agent_writes_the_same_steps_whether_its_conversation_is_kept_or_read_anew(
    seed: int,
) -> None:
    model = tiny_mistral(seed)
    grammar, decoder = PlanGrammar(model.grammar_tokenizer), Decoder(model)
    request = PlanRequest("how warm is the lathe in hall B", PLANT, max_steps=3)
    prompt = model.encode(agent_prompt(render_prompt(request)))
    kept, anew = (
        StepAgent(model, grammar, decoder, stateless=stateless).run(request, prompt, {"hall": "B"})
        for stateless in (False, True)
    )
    assert kept.plan == anew.plan
    assert kept.model_calls == anew.model_calls
    # What it writes by itself is valid too.
    request.validate(parse_plan(kept.plan))


def test_agent_is_shown_the_first_results_alone_and_no_more_than_so_many_characters() -> None:
    rows = [{"text": f"result {number}"} for number in range(9)]
    shown = told(Outcome("s2", "find", "done", rows=rows))
    assert f"result {ROWS - 1}" in shown
    assert f"result {ROWS}" not in shown
    assert "s2" in shown
    long = told(Outcome("s1", "find", "done", rows=[{"text": "x" * 9999}]))
    assert CHARACTERS < len(long) < CHARACTERS + 60
    assert "It broke." in told(Outcome("s1", "find", "failed", error="It broke."))


def test_agents_prompt_has_the_head_of_the_planners() -> None:
    prompt = render_prompt(PlanRequest("how warm is the lathe", PLANT))
    assert agent_prompt(prompt).head == prompt.head
    assert agent_prompt(prompt).tail.endswith(prompt.tail)


def test_trained_models_are_given_whole_prompts() -> None:
    with pytest.raises(InputError, match="--prompt-tokens"):
        LatencyTrial(model=ModelChoice(name="here"), shape=PromptShape(7, 1))
