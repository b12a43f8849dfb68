"""Tests of the step-by-step agent, with scripted lines or its own, and with real tool calls."""

from __future__ import annotations

import pytest

from casewright.bench.scripts import ScriptWriter
from casewright.graph import Outcome
from casewright.graph.step_agent import (
    MAX_CHARACTERS,
    MAX_ROWS,
    StepAgent,
    agent_prompt,
    results_text,
)
from casewright.planner import PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel
from casewright.tools import CallContext, Toolbox, tool_from_function
from tests.support.tiny_mistral import tiny_mistral


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


@pytest.mark.parametrize("stateless", [False, True])
def test_agent_calls_each_tool_with_the_result_of_the_step_before(
    model: LanguageModel, grammar: PlanGrammar, stateless: bool
) -> None:
    request = PlanRequest("how warm is the lathe", PLANT)
    lines = ('s1 = find_machine(query="lathe")', "s2 = read_sensor(machine_id=s1.machine_id)")
    scripts = ScriptWriter(model)
    tools = parse_plan("\n".join(lines)).tools
    parts = [
        scripts.script(grammar.line_matcher(request, tools[:index]), text).chooser()
        for index, text in enumerate([*lines, "done"])
    ]
    agent = StepAgent(model, grammar, Decoder(model), stateless=stateless)
    prompt = model.encode(agent_prompt(render_prompt(request)))
    run = agent.run(request, prompt, {"hall": "B"}, parts)
    assert run.plan == "\n".join(lines)
    assert run.model_calls == 3
    assert run.outcomes[0].rows[0] == {"machine_id": "M0 lathe in B"}
    assert run.outcomes[1].arguments == {"machine_id": "M0 lathe in B"}
    assert [outcome.status for outcome in run.outcomes] == ["done", "done"]
    result_tokens = [
        model.tokenizer.encode(results_text(outcome), add_special_tokens=False)
        for outcome in run.outcomes
    ]
    if stateless:
        assert run.prompt_tokens > 3 * len(prompt.tail) + 2 * len(result_tokens[0])
    else:
        assert run.prompt_tokens == len(prompt.tail) + sum(map(len, result_tokens))


def test_agent_skips_a_step_whose_reference_found_nothing_and_continues(
    model: LanguageModel, grammar: PlanGrammar
) -> None:
    request = PlanRequest("how warm is nothing", PLANT)
    lines = ('s1 = find_machine(query="nothing")', "s2 = read_sensor(machine_id=s1.machine_id)")
    scripts = ScriptWriter(model)
    tools = ("find_machine", "read_sensor")
    parts = [
        scripts.script(grammar.line_matcher(request, tools[:index]), text).chooser()
        for index, text in enumerate([*lines, "done"])
    ]
    agent = StepAgent(model, grammar, Decoder(model))
    run = agent.run(request, model.encode(agent_prompt(render_prompt(request))), {}, parts)
    assert [outcome.status for outcome in run.outcomes] == ["empty", "skipped"]
    assert run.model_calls == 3


@pytest.mark.parametrize("seed", range(3))
def test_agent_writes_the_same_steps_with_kept_and_reread_conversation(
    seed: int,
) -> None:
    model = tiny_mistral(seed)
    grammar, decoder = PlanGrammar(model.grammar_tokenizer), Decoder(model)
    request = PlanRequest("how warm is the lathe in hall B", PLANT, max_steps=3)
    prompt = model.encode(agent_prompt(render_prompt(request)))
    cached, reread = (
        StepAgent(model, grammar, decoder, stateless=stateless).run(request, prompt, {"hall": "B"})
        for stateless in (False, True)
    )
    assert cached.plan == reread.plan
    assert cached.model_calls == reread.model_calls
    # Lines that the model chooses itself make a valid plan.
    request.validate(parse_plan(cached.plan))


def test_results_text_contains_only_the_first_rows_within_the_character_limit() -> None:
    rows = [{"text": f"result {number}"} for number in range(9)]
    text = results_text(Outcome("s2", "find", "done", rows=rows))
    assert f"result {MAX_ROWS - 1}" in text
    assert f"result {MAX_ROWS}" not in text
    assert "s2" in text
    cut_text = results_text(Outcome("s1", "find", "done", rows=[{"text": "x" * 9999}]))
    assert MAX_CHARACTERS < len(cut_text) < MAX_CHARACTERS + 60
    assert "It broke." in results_text(Outcome("s1", "find", "failed", error="It broke."))


def test_agent_prompt_has_the_same_head_as_the_planner_prompt() -> None:
    prompt = render_prompt(PlanRequest("how warm is the lathe", PLANT))
    assert agent_prompt(prompt).head == prompt.head
    assert agent_prompt(prompt).tail.endswith(prompt.tail)
