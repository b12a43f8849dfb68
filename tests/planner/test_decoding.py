"""Decoding writes the same tokens as a loop over the whole sequence, in fewer steps."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from casewright.errors import DecodingError
from casewright.planner import PlanRequest, render_prompt
from casewright.planner.decoding import Decoder, DecodingLimits, Written, greedy
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel, PromptTokens
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import byte_level_tokenizer, tiny_mistral

QUESTIONS = (
    "Where is the blue tent that I ordered?",
    "Is my phone waterproof, and what do buyers say of its battery?",
    "thanks!",
    "Do you have wool socks, and when does my parcel arrive?",
)
#: Most steps of a plan: decoding takes several steps and is still quick.
STEPS = 3


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


def requests(count: int = len(QUESTIONS)) -> list[PlanRequest]:
    context = {"item_id": "P1"}
    return [PlanRequest(question, SHOP, context, max_steps=STEPS) for question in QUESTIONS[:count]]


def prompt_of(model: LanguageModel, request: PlanRequest) -> PromptTokens:
    return model.encode(render_prompt(request))


def decode_plainly(model: LanguageModel, request: PlanRequest) -> tuple[list[int], int]:
    """Return tokens and steps of a loop that computes the whole sequence at every step."""
    matcher = PlanGrammar(model.grammar_tokenizer).plan_matcher(request)
    prompt = prompt_of(model, request)
    sequence, steps = [*prompt.head, *prompt.tail], 0
    plan = matcher.consume_forced()
    while not matcher.finished:
        with torch.no_grad():
            logits = model.network(torch.tensor([sequence + plan])).logits[0, -1]
        steps += 1
        token = greedy(logits.numpy(), matcher)
        if token in model.ends:
            break
        matcher.consume(token)
        plan += [token, *matcher.consume_forced()]
    return plan, steps


def write(decoder: Decoder, model: LanguageModel, request: PlanRequest, **limits: Any) -> Written:
    matcher = PlanGrammar(model.grammar_tokenizer).plan_matcher(request)
    return decoder.write(prompt_of(model, request), matcher, limits=DecodingLimits(**limits))


def random_model(kind: str) -> LanguageModel:
    """Return a small random model of another architecture, with the same tokenizer."""
    transformers: Any = import_module("transformers")
    tokenizer = byte_level_tokenizer()
    common = {"vocab_size": 512, "bos_token_id": 0, "eos_token_id": 1, "initializer_range": 0.3}
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    decoder = {"num_key_value_heads": 2, "intermediate_size": 64, **size}
    config = {
        "llama": lambda: transformers.LlamaConfig(**common, **decoder),
        "qwen2": lambda: transformers.Qwen2Config(**common, **decoder),
        "gpt2": lambda: transformers.GPT2Config(
            **common, n_embd=32, n_layer=2, n_head=4, n_positions=4096
        ),
        "mistral with a window": lambda: transformers.MistralConfig(
            **common, **decoder, sliding_window=64
        ),
    }[kind]()
    torch.manual_seed(1)
    network = transformers.AutoModelForCausalLM.from_config(config)
    return LanguageModel(kind, network.eval(), tokenizer)


def test_decoder_writes_the_same_plan_as_a_plain_loop(
    mistral: LanguageModel,
) -> None:
    decoder = Decoder(mistral)
    for request in requests():
        plain, steps = decode_plainly(mistral, request)
        written = write(decoder, mistral, request)
        assert list(written.tokens) == plain
        assert written.model_steps == steps


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2", "mistral with a window"])
def test_decoder_of_other_architectures_writes_the_same_plan_as_a_plain_loop(kind: str) -> None:
    model = random_model(kind)
    request = requests()[1]
    written = write(Decoder(model), model, request)
    assert list(written.tokens) == decode_plainly(model, request)[0]


def test_forced_tokens_need_no_model_steps(mistral: LanguageModel) -> None:
    for request in requests():
        written = write(Decoder(mistral), mistral, request)
        chosen = len(written.tokens) - written.forced
        # Where another step is possible, the end of the plan is a choice too.
        assert written.model_steps in (chosen, chosen + 1)
        assert written.forced > chosen / 4


@pytest.mark.parametrize("kind", ["mistral", "gpt2", "mistral with a window"])
def test_batch_decoding_writes_the_same_plans_as_single_decoding(
    mistral: LanguageModel, kind: str
) -> None:
    model = mistral if kind == "mistral" else random_model(kind)
    decoder = Decoder(model)
    grammar = PlanGrammar(model.grammar_tokenizer)
    batch = requests()
    outputs = decoder.write_many(
        [prompt_of(model, request) for request in batch],
        [grammar.plan_matcher(request) for request in batch],
        limits=DecodingLimits(),
    )
    for request, written in zip(batch, outputs, strict=True):
        single = write(decoder, model, request)
        assert isinstance(written, Written)
        assert written.tokens == single.tokens
        assert written.model_steps == single.model_steps


def test_too_long_plan_of_a_batch_does_not_affect_the_others(mistral: LanguageModel) -> None:
    batch = requests()
    decoder = Decoder(mistral)
    lengths = [len(write(decoder, mistral, request).tokens) for request in batch]
    limit = sorted(lengths)[-2]
    assert limit < max(lengths)
    grammar = PlanGrammar(mistral.grammar_tokenizer)
    outputs = decoder.write_many(
        [prompt_of(mistral, request) for request in batch],
        [grammar.plan_matcher(request) for request in batch],
        limits=DecodingLimits(tokens=limit),
    )
    for length, written in zip(lengths, outputs, strict=True):
        assert isinstance(written, Written if length <= limit else DecodingError)


def test_prompt_head_is_computed_once_and_its_states_stay_unchanged(mistral: LanguageModel) -> None:
    decoder = Decoder(mistral)
    first = write(decoder, mistral, requests()[0])
    assert not first.prefix_cached
    head = prompt_of(mistral, requests()[0]).head
    states = decoder.prefixes.get(head)
    assert states is not None
    saved = [(keys.clone(), values.clone()) for keys, values in states.layers]
    for request in requests():
        assert write(decoder, mistral, request).prefix_cached
    for (keys, values), (old_keys, old_values) in zip(states.layers, saved, strict=True):
        assert torch.equal(keys, old_keys)
        assert torch.equal(values, old_values)
    assert write(decoder, mistral, requests()[0]).tokens == first.tokens


def test_prefix_cache_keeps_the_last_used_head_within_its_bytes(mistral: LanguageModel) -> None:
    toolboxes = [SHOP.without(name) for name in ("fact", "desk")]
    batch = [PlanRequest("hello", toolbox, max_steps=1) for toolbox in toolboxes]
    unbounded = Decoder(mistral)
    write(unbounded, mistral, batch[0])
    size = unbounded.prefixes.bytes
    decoder = Decoder(mistral, prefix_bytes=int(1.5 * size))
    for _ in range(2):
        for request in batch:
            assert not write(decoder, mistral, request).prefix_cached
            assert write(decoder, mistral, request).prefix_cached
            assert len(decoder.prefixes) == 1
            assert decoder.prefixes.bytes <= 1.5 * size
    uncached = Decoder(mistral, prefix_bytes=0)
    assert write(uncached, mistral, batch[0]).tokens == write(unbounded, mistral, batch[0]).tokens
    assert uncached.prefixes.bytes == 0


def test_decoding_fails_after_its_deadline(mistral: LanguageModel) -> None:
    decoder = Decoder(mistral)
    with pytest.raises(DecodingError, match="in time"):
        write(decoder, mistral, requests()[0], deadline=time.perf_counter())
    assert write(decoder, mistral, requests()[0], deadline=time.perf_counter() + 60).tokens


def test_a_request_waits_for_a_busy_model_until_its_deadline(
    mistral: LanguageModel,
) -> None:
    decoder = Decoder(mistral)
    head = prompt_of(mistral, requests()[0]).head
    with decoder.session(head), pytest.raises(DecodingError, match="busy"):
        write(decoder, mistral, requests()[0], deadline=time.perf_counter() + 0.1)


def test_a_prompt_longer_than_the_model_reads_is_refused() -> None:
    model = tiny_mistral(max_position_embeddings=64)
    with pytest.raises(DecodingError, match="the model reads at most 64"):
        write(Decoder(model), model, requests()[0])


def test_decoder_gives_concurrent_threads_their_own_plans(mistral: LanguageModel) -> None:
    decoder = Decoder(mistral)
    expected = [write(decoder, mistral, request).tokens for request in requests()]
    written: dict[int, tuple[int, ...]] = {}

    def write_plan(number: int) -> None:
        written[number] = write(decoder, mistral, requests()[number % 4]).tokens

    threads = [threading.Thread(target=write_plan, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert written == {number: expected[number % 4] for number in range(8)}


def test_session_writes_the_same_plan_as_one_read_of_the_whole_text(mistral: LanguageModel) -> None:
    request = requests()[0]
    prompt = prompt_of(mistral, request)
    grammar = PlanGrammar(mistral.grammar_tokenizer)
    decoder = Decoder(mistral)
    note = mistral.encode_plan(" found: one thing\n")
    with decoder.session(prompt.head) as session:
        session.feed(prompt.tail)
        first = session.write(grammar.plan_matcher(request))
        session.feed(note)
        second = session.write(grammar.plan_matcher(request))
    whole = PromptTokens(prompt.head, (*prompt.tail, *first.tokens, *note))
    expected = decoder.write(whole, grammar.plan_matcher(request))
    assert second.tokens == expected.tokens
    assert second.prompt_tokens == expected.prompt_tokens


def test_nan_logits_still_give_an_allowed_token(
    mistral: LanguageModel,
) -> None:
    matcher = PlanGrammar(mistral.grammar_tokenizer).plan_matcher(requests()[0])
    matcher.consume_forced()
    assert greedy(np.full(512, np.nan, np.float32), matcher) in matcher.allowed()
