"""A small Mistral by NumPy: what transformers makes of the same folder, without importing it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from casewright.errors import DecodingError, InputError
from casewright.planner import ModelPlanner, plan_store, render_prompt
from casewright.planner.decoding import Limits
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel, load_language_model
from casewright.planner.numpy_model import NumpyModel, can_compute, load_numpy_model
from casewright.planner.numpy_model.decoder import NumpyDecoder
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.readers import toy_queries
from tests.support.tiny_mistral import save_tiny

REQUESTS = [query.record.request(SHOP) for query in toy_queries()[:4]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In bfloat16 and several files, as models ship, with more than one head for the same keys."""
    made = save_tiny(tmp_path_factory.mktemp("model"), initializer_range=0.3)
    network = load_language_model(made, device="cpu").network
    for file in made.glob("*.safetensors"):
        file.unlink()
    network.to(torch.bfloat16).save_pretrained(made, max_shard_size=30_000)
    assert len([*made.glob("*.safetensors")]) > 1
    return made


@pytest.fixture(scope="module")
def by_torch(folder: Path) -> LanguageModel:
    return load_language_model(folder, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def by_numpy(folder: Path) -> NumpyModel:
    return load_numpy_model(folder)


def is_near(logits: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    return bool(np.allclose(logits, expected, rtol=1e-4, atol=1e-4))


def test_logits_are_those_of_transformers_in_one_call_and_token_by_token(
    by_torch: LanguageModel, by_numpy: NumpyModel
) -> None:
    tokens = np.random.default_rng(0).integers(4, 512, 300).tolist()
    with torch.no_grad():
        expected = by_torch.network(torch.tensor([tokens])).logits[0].numpy()
    states = by_numpy.network.states()
    assert is_near(by_numpy.network.read(tokens[:270], states), expected[269])
    for place in range(270, 300):
        logits = by_numpy.network.read([tokens[place]], states)
        assert is_near(logits, expected[place])
    # Going back forgets what came later.
    states.length = 200
    assert is_near(by_numpy.network.read(tokens[200:250], states), expected[249])


def test_prompts_and_ends_are_the_same_tokens(
    by_torch: LanguageModel, by_numpy: NumpyModel
) -> None:
    assert by_numpy.ends == by_torch.ends
    assert by_numpy.positions == by_torch.positions
    for request in REQUESTS:
        prompt = render_prompt(request)
        assert by_numpy.encode(prompt) == by_torch.encode(prompt)


@pytest.mark.parametrize("constrained", [True, False], ids=["grammar", "free"])
def test_plans_are_the_same_alone_and_many_at_once(
    constrained: bool, by_torch: LanguageModel, by_numpy: NumpyModel
) -> None:
    settings = {"tokens": 60, "seconds": 60.0}
    first = ModelPlanner(by_torch, constrained=constrained, **settings)  # type: ignore[arg-type]
    second = ModelPlanner(by_numpy, constrained=constrained, **settings)  # type: ignore[arg-type]
    told = [(str(r.plan), r.written, r.fallback == "") for r in first.plan_many(REQUESTS)]
    for results in (second.plan_many(REQUESTS), [second.plan(one) for one in REQUESTS]):
        assert [(str(r.plan), r.written, r.fallback == "") for r in results] == told


def test_a_prior_leans_both_the_same_way(by_torch: LanguageModel, by_numpy: NumpyModel) -> None:
    plans = plan_store(toy_queries(), HashingEncoder(64))
    first, second = (
        ModelPlanner(model, plan_cases=plans, examples=1, prior=3.0, tokens=60)
        for model in (by_torch, by_numpy)
    )
    told = [str(result.plan) for result in first.plan_many(REQUESTS)]
    assert [str(result.plan) for result in second.plan_many(REQUESTS)] == told
    alone = ModelPlanner(by_numpy, plan_cases=plans, examples=1, tokens=60)
    assert [str(result.plan) for result in alone.plan_many(REQUESTS)] != told


def test_a_head_is_read_once_and_a_deadline_is_kept(by_numpy: NumpyModel) -> None:
    decoder, grammar = NumpyDecoder(by_numpy), PlanGrammar(by_numpy.grammar_tokenizer)
    prompts = [by_numpy.encode(render_prompt(request)) for request in REQUESTS]
    over = Limits(deadline=time.perf_counter() - 1)
    with pytest.raises(DecodingError, match="time"):
        decoder.write(prompts[0], grammar.plan(REQUESTS[0]), limits=over)
    heads = set()
    for prompt, request in zip(prompts, REQUESTS, strict=True):
        made = decoder.write(prompt, grammar.plan(request))
        again = NumpyDecoder(by_numpy).write(prompt, grammar.plan(request))
        assert made.tokens == again.tokens
        assert made.head_reused == (prompt.head in heads)
        heads.add(prompt.head)
    assert len(heads) < len(prompts)


def test_neither_torch_nor_transformers_is_imported(folder: Path) -> None:
    code = (
        "import sys\n"
        "from casewright.planner import ModelPlanner, PlanRequest\n"
        "from casewright.planner.numpy_model import load_numpy_model\n"
        "from tests.planner.helpers import SHOP\n"
        "planner = ModelPlanner(load_numpy_model(__import__('pathlib').Path(sys.argv[1])))\n"
        "assert planner.plan(PlanRequest('where is it', SHOP)).fallback == ''\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def test_what_is_damaged_or_another_network_is_refused(folder: Path, tmp_path: Path) -> None:
    copied = save_tiny(tmp_path / "copied")
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    weights = copied / "model.safetensors"
    whole = weights.read_bytes()
    for damaged in (whole[:-100], whole[:100], b"", whole.replace(b"lm_head", b"lm_hand", 1)):
        weights.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cannot be read|lacks the weight lm_head\.weight"):
            load_numpy_model(copied)
    for changes in ({"model_type": "llama"}, {"sliding_window": 16}, {"hidden_act": "gelu"}):
        (copied / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
        assert not can_compute(copied)
        with pytest.raises(InputError, match="no network that NumPy computes"):
            load_numpy_model(copied)
