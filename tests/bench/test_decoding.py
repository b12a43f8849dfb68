"""Tests of the decoding bench with the queries of the shop and a tiny random network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.decoding import measure
from casewright.bench.decoding.measure import (
    PLAN_CASE_COUNTS,
    WIDTHS,
    DecodingTrial,
    enlarged_toolbox,
    measure_decoding,
)
from casewright.bench.decoding.systems import (
    CACHED_HEAD_SUFFIX,
    CASEWRIGHT,
    OWN_CASEWRIGHT,
    OWN_CHOICE,
    OWN_DRAFTED,
    OWN_MASKED,
    WITH_CACHED_HEAD,
    Systems,
)
from casewright.bench.models import (
    ModelChoice,
    measure_bandwidth,
    tokenizer_texts,
    weight_bytes,
)
from casewright.bench.report import Report
from casewright.bench.scripts import ScriptWriter, distant_plan_cases, make_tasks, shuffled_queries
from casewright.domains import find_domain
from casewright.errors import GrammarError, InputError
from casewright.planner import PlanRequest, render_prompt
from casewright.planner.decoding import Decoder
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel, PromptTokens
from casewright.serve.cli.bench.report import show
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder
from casewright.tools import Toolbox
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries

Bench = dict[str, Any]
QUERIES = shop_queries()
TINY = ModelChoice(size="tiny")


@pytest.fixture(scope="module", autouse=True)
def home_variable(home: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_HOME", str(home))
        yield


@pytest.fixture(scope="module")
def measured(home_variable: None) -> Report:
    return measure_decoding(DecodingTrial(model=TINY, plans=2, grammar_queries=3, pool=60))


@pytest.fixture(scope="module")
def report(measured: Report) -> Bench:
    document: Bench = json.loads(json.dumps(measured.to_json(), allow_nan=False))
    return document


@pytest.fixture(scope="module")
def shop(home_variable: None) -> Toolbox:
    """Return the toolbox of the shop."""
    opened = find_domain("shopping").open(data_folder() / "shopping", default_encoder(), False)
    opened.close()
    return opened.toolbox


@pytest.fixture(scope="module")
def model(shop: Toolbox) -> LanguageModel:
    return TINY.open(tokenizer_texts(shop, QUERIES[:500]))


@pytest.fixture(scope="module")
def grammar(model: LanguageModel) -> PlanGrammar:
    return PlanGrammar(model.grammar_tokenizer)


def test_decoder_takes_at_most_half_of_the_model_steps_of_generate(report: Bench) -> None:
    steps = {row["system"]: row["model_steps"] for row in report["rows"]}
    assert 0 < steps[WITH_CACHED_HEAD] <= steps["generate"] / 2
    assert report["figures"]["share_of_generate_model_steps"] <= 0.5
    # One step of masked generate ends the plan.
    assert steps["generate, masked"] == steps["generate"] + 1


def test_every_system_writes_the_same_plans(report: Bench) -> None:
    assert report["figures"]["scripted_plans_right_casewright"] == 1
    assert report["figures"]["scripted_plans_right_masked_generate"] == 1


def test_prompt_tokens_exclude_a_kept_head(report: Bench) -> None:
    prompt_tokens = {row["system"]: row["prompt_tokens"] for row in report["rows"]}
    head = report["settings"]["head_tokens"]
    for name in ("generate", "generate, masked", CASEWRIGHT):
        assert prompt_tokens[name] == prompt_tokens[name + CACHED_HEAD_SUFFIX] + head


def test_prompt_tokens_grow_with_the_number_of_plan_cases(report: Bench) -> None:
    prompt_tokens = {row["system"]: row["prompt_tokens"] for row in report["rows"]}
    case_tokens = [prompt_tokens[f"casewright, {count} plan cases"] for count in PLAN_CASE_COUNTS]
    assert case_tokens == sorted(set(case_tokens))
    assert case_tokens[PLAN_CASE_COUNTS.index(1)] == prompt_tokens[WITH_CACHED_HEAD]


def test_report_names_the_model_and_omits_right_tools_of_random_weights(report: Bench) -> None:
    assert report["bench"] == "decoding"
    settings = report["settings"]
    assert settings["model"] == "random-mistral-tiny"
    assert (settings["dtype"], settings["device"]) == ("float32", "cpu")
    assert settings["parameters"] > 500_000
    assert not any("tools_right" in row for row in report["rows"])
    assert "no share of right tools" in " ".join(report["notes"])


def test_report_has_rows_for_every_toolbox_size_and_the_memory_limit(report: Bench) -> None:
    rows = {row["system"]: row for row in report["rows"]}
    for tools in (7, 30, 100):
        prepared, complete = (
            rows[f"grammar, {tools} tools: {part}"] for part in ("ready", "whole plan")
        )
        assert 0 < prepared["ms_p50"] < complete["ms_p95"]
    limit = rows["limit of memory for casewright, head kept"]
    assert 0 < limit["ms_p50"] < rows[WITH_CACHED_HEAD]["ms_p50"]
    assert all(list(row) == list(report["rows"][0]) for row in report["rows"])


def test_report_contains_the_time_of_a_step_by_its_number_of_tokens(report: Bench) -> None:
    costs = [report["figures"][f"network_ms_p50_reading_{width}_tokens"] for width in WIDTHS]
    assert len(costs) > 3
    assert min(costs) > 0


def test_decoding_report_is_plotted_and_printed(
    measured: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(measured, as_json=False, plot=tmp_path / "d.png")
    assert (tmp_path / "d.png").stat().st_size > 5000
    assert "ratio_masked_generate_over_casewright_head_kept" in capsys.readouterr().out


def test_trained_model_is_scored_on_held_out_queries(
    model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two counts suffice: a random network writes up to its limit of tokens.
    monkeypatch.setattr(measure, "PLAN_CASE_COUNTS", (0, 1))
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    choice = ModelChoice(name=str(tmp_path))
    trial = DecodingTrial(model=choice, plans=1, grammar_queries=1, held_out=1, pool=20)
    report = measure_decoding(trial)
    assert report.settings["model"] == str(tmp_path)
    shares = [row["tools_right"] for row in report.rows if "plan cases" in row["system"]]
    assert len(shares) == 2
    steps = {
        row["system"]: row["model_steps"] for row in report.rows if OWN_CHOICE in row["system"]
    }
    assert steps[OWN_DRAFTED] <= steps[OWN_CASEWRIGHT] < steps[OWN_MASKED]
    assert report.figures["own_choice_plans_of_casewright_same_as_drafted"] == 1


def test_model_steps_equal_the_calls_of_the_network(
    model: LanguageModel, grammar: PlanGrammar, shop: Toolbox
) -> None:
    (task,), _ = make_tasks(model, grammar, shop, shuffled_queries(QUERIES, 0), 1)
    prompt = model.encode(render_prompt(task.request))
    systems = Systems(model, grammar, prompt.head).scripted()
    calls: list[int] = []
    hook = model.network.register_forward_pre_hook(lambda *arguments: calls.append(1))
    try:
        for name, write in systems.items():
            # The first run reads the head into the cache; the second is counted.
            for _ in range(2):
                calls.clear()
                plan = write(task, prompt)
            # Without a cached head, it reads the head in pieces of 512 tokens.
            pieces = -(-len(prompt.head) // 512) if name == CASEWRIGHT else 0
            assert len(calls) == plan.model_steps + pieces, name
    finally:
        hook.remove()


def test_script_writes_its_text_in_fewer_choices_than_tokens(
    model: LanguageModel, grammar: PlanGrammar, shop: Toolbox
) -> None:
    request = PlanRequest("do you sell a red lamp", shop)
    text = 's1 = prod_search(query="red lamp")'
    writer = ScriptWriter(model)
    forced = writer.script(grammar.plan_matcher(request), text)
    masked = writer.script(grammar.plan_matcher(request), text, forced=False)
    assert model.decode(forced.tokens) == model.decode(masked.tokens) == text
    assert masked.choices == (*masked.tokens, model.ends[0])
    assert len(forced.choices) < len(forced.tokens)
    prompt = PromptTokens((1, 2), (3,))
    result = Decoder(model).write(prompt, grammar.plan_matcher(request), choose=forced.chooser())
    assert result.tokens == forced.tokens
    assert result.model_steps == len(forced.choices)


@pytest.mark.parametrize(
    "text", ["s1 = nothing()", 's1 = prod_search(query="red lamp"', "s1 = no_evidence() "]
)
def test_script_refuses_text_that_the_grammar_forbids(
    model: LanguageModel, grammar: PlanGrammar, shop: Toolbox, text: str
) -> None:
    with pytest.raises(GrammarError):
        ScriptWriter(model).script(grammar.plan_matcher(PlanRequest("a red lamp", shop)), text)


def test_enlarged_toolbox_contains_the_domain_tools_and_has_the_given_size(
    shop: Toolbox,
) -> None:
    declared = [query for query in QUERIES if query.record.tools_extra][:10]
    enlarged = enlarged_toolbox(shop, declared, 30)
    assert len(enlarged) == 30
    assert set(shop.names) <= set(enlarged.names)
    assert len(enlarged_toolbox(shop, [], 30)) == len(shop)


def test_plan_cases_of_the_query_and_of_its_neighbours_are_left_out() -> None:
    queries = shuffled_queries(QUERIES, 0)[:30]
    with distant_plan_cases(queries, [queries[3]], HashingEncoder()) as store:
        keys = {case.metadata["key"] for case in store.all()}
    assert str(queries[3].record.id) not in keys
    assert 20 < len(keys) < 30


def test_invalid_model_choices_are_refused() -> None:
    with pytest.raises(InputError, match="100m"):
        ModelChoice(size="9b")
    with pytest.raises(InputError, match="--model"):
        ModelChoice(adapter="here")
    with pytest.raises(InputError, match="--model, other than mistral"):
        ModelChoice(name="mistral", adapter="here")
    with pytest.raises(InputError, match="int8"):
        ModelChoice(dtype="int8")
    with pytest.raises(InputError, match="cuda:9"):
        measure_decoding(DecodingTrial(model=ModelChoice(device="cuda:9")))


def test_weight_bytes_counts_all_weights_but_the_embedding(model: LanguageModel) -> None:
    network = model.network
    count = sum(w.numel() for w in (*network.parameters(), *network.buffers()))
    assert weight_bytes(model) == 4 * (count - 8192 * 32)
    assert measure_bandwidth(model.device, 2**20) > 1e6


def test_random_models_are_equal_for_the_same_seed() -> None:
    first, repeated, other = (
        ModelChoice(size="tiny", seed=seed).open(tokenizer_texts(Toolbox([]), QUERIES[:50]))
        for seed in (0, 0, 1)
    )
    weights = [m.network.get_input_embeddings().weight for m in (first, repeated, other)]
    assert bool((weights[0] == weights[1]).all())
    assert not bool((weights[0] == weights[2]).all())
