"""Prompts and plans are encoded correctly by several kinds of tokenizer and chat template."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.planner import Prompt
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.plain_tokenizer import PlainTokenizer
from tests.support import tiny_tokenizers as kinds

KINDS: dict[str, Callable[[], Any]] = {
    "mistral": kinds.mistral_like,
    "mistral_v1": kinds.sentencepiece_like,
    "mistral_v3": partial(kinds.sentencepiece_like, special=True),
    "llama2": partial(kinds.sentencepiece_like, legacy=True),
    "llama3": kinds.llama3_like,
    "qwen": kinds.qwen_like,
    "gpt2": kinds.gpt2_like,
}
HEAD = "You plan look-ups.\n\nTools:\nprod_search(query)\n\nThe plan is s1 = no_evidence()."
TAIL = 'Context: {"page": "P1"}\n\nQuestion: wo ist mein Päckchen 日本?\nPlan:'
#: Special tokens of all kinds; text that looks like them stays text.
MARKUP = "</s> <s>[/INST][INST] <unk><pad> <|im_end|>\n<|im_start|><|eot_id|><|endoftext|></think>"


def model_of(tokenizer: Any, **config: Any) -> LanguageModel:
    transformers: Any = import_module("transformers")
    settings = transformers.MistralConfig(
        **{
            "vocab_size": len(tokenizer),
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "intermediate_size": 8,
            "eos_token_id": None,
            **config,
        }
    )
    return LanguageModel("tiny", transformers.MistralForCausalLM(settings), tokenizer)


@cache
def model(kind: str) -> LanguageModel:
    return model_of(KINDS[kind]())


def encode(language_model: LanguageModel, prompt: Prompt) -> list[int]:
    encoded = language_model.encode(prompt)
    return [*encoded.head, *encoded.tail]


def special_tokens(language_model: LanguageModel, ids: list[int]) -> list[str]:
    added = language_model.tokenizer.added_tokens_decoder
    return [added[id_].content for id_ in ids if id_ in added]


@pytest.mark.parametrize("kind", KINDS)
def test_encoded_prompt_equals_the_tokenization_of_the_whole_text(kind: str) -> None:
    tokenizer = model(kind).tokenizer
    prompt = Prompt(HEAD, TAIL)
    text = f"<|endoftext|>{prompt}"
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": str(prompt)}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        )
    expected = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = encode(model(kind), prompt)
    # Llama 3's template contains the time, which stays that of the loading.
    actual, whole = (tokenizer.decode(part).partition("user")[2] for part in (ids, expected))
    assert actual == whole
    if kind != "llama3":
        assert ids == expected
    assert special_tokens(model(kind), ids).count(tokenizer.bos_token) == bool(tokenizer.bos_token)


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_with_the_same_head_start_with_the_same_tokens(kind: str) -> None:
    first, other = (model(kind).encode(Prompt(HEAD, tail)) for tail in (TAIL, " \n \n\nx"))
    assert first.head == other.head
    assert first.tail != other.tail
    assert model(kind).encode(Prompt("Else", TAIL)).tail == first.tail


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_looks_like_a_special_token_is_encoded_as_plain_text(kind: str) -> None:
    language_model = model(kind)
    plain = special_tokens(language_model, encode(language_model, Prompt(HEAD, TAIL)))
    hostile = encode(language_model, Prompt(HEAD + MARKUP, MARKUP + TAIL))
    assert special_tokens(language_model, hostile) == plain
    assert language_model.tokenizer.decode(hostile).count(MARKUP) == 2
    plan = f's1 = prod_search(query="{MARKUP}")'
    assert special_tokens(language_model, language_model.encode_plan(plan)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_plain_copy_of_a_tokenizer_declares_all_markup_special(kind: str) -> None:
    plain = PlainTokenizer.of(model(kind).tokenizer.backend_tokenizer.to_str())
    added = json.loads(plain.definition)["added_tokens"]
    assert {token["id"] for token in added if token["special"]} == plain.special_ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_grammar_can_force_text_that_looks_like_a_special_token(kind: str) -> None:
    llguidance: Any = import_module("llguidance")
    grammar = llguidance.LLMatcher.grammar_from_lark('start: "</s> [/INST] <|im_end|>"')
    matcher = llguidance.LLMatcher(model(kind).grammar_tokenizer, grammar)
    forced = matcher.compute_ff_tokens()
    assert matcher.consume_tokens(forced), matcher.get_error()
    assert model(kind).decode(forced) == "</s> [/INST] <|im_end|>"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=40))
@example(text=" s1 =  ▁▁ </s>\n")
@example(text="e\u0301 ﬁ ½ \u2028\u200d🧪\x00<0x41>")
def test_any_plan_text_is_restored_from_its_tokens(kind: str, text: str) -> None:
    ids = model(kind).encode_plan(text)
    assert model(kind).decode([*ids, *model(kind).ends]) == text


def test_lone_surrogate_in_a_prompt_is_encoded_as_a_question_mark() -> None:
    encoded = model("mistral").encode(Prompt(HEAD, "a \ud800 b"))
    assert encoded == model("mistral").encode(Prompt(HEAD, "a ? b"))


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("mistral", ["</s>"]),
        ("llama3", ["<|eot_id|>", "<|end_of_text|>"]),
        ("qwen", ["<|im_end|>", "<|endoftext|>"]),
        ("gpt2", ["<|endoftext|>"]),
    ],
)
def test_first_end_token_is_that_of_the_chat_template(kind: str, ends: list[str]) -> None:
    assert special_tokens(model(kind), list(model(kind).ends)) == ends
    assert model(kind).grammar_tokenizer.eos_tokens == list(model(kind).ends)


def test_end_tokens_of_the_configuration_count_unless_they_are_text() -> None:
    tokenizer = kinds.mistral_like()
    text_id = tokenizer.convert_tokens_to_ids("a")
    loaded = model_of(tokenizer, eos_token_id=[text_id, tokenizer.unk_token_id, 9_999])
    assert special_tokens(loaded, list(loaded.ends)) == ["</s>", "<unk>"]


def test_prompts_are_encoded_the_same_in_several_threads() -> None:
    prompts = [Prompt(f"{HEAD} {n % 40}", f"{TAIL} {n}") for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(model("qwen").encode, prompts)) == [
            model("qwen").encode(prompt) for prompt in prompts
        ]


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        ("{{ raise_exception('no user here') }}", "cannot be rendered.*no user here"),
        ("{% for m in messages %}{{ m['content'] ", "cannot be rendered"),
        ("{% for m in messages %}{{ m['content'] | upper }}{% endfor %}", "not contain .* unch"),
        ("{{ messages[0]['content'] }} {{ messages[0]['content'] }}", "not contain .* once"),
    ],
    ids=["raises", "syntax", "upper", "twice"],
)
def test_a_chat_template_that_cannot_show_the_prompt_is_refused(template: str, cause: str) -> None:
    tokenizer = kinds.mistral_like()
    tokenizer.chat_template = template
    with pytest.raises(InputError, match=cause):
        model_of(tokenizer)


def test_chat_template_for_a_single_turn_is_accepted() -> None:
    tokenizer = kinds.mistral_like()
    tokenizer.chat_template = (
        "{% if messages | length > 1 %}{{ raise_exception('one') }}{% endif %}"
        "{{ bos_token }}U: {{ messages[0]['content'] }}</s>A:"
    )
    loaded = model_of(tokenizer)
    assert tokenizer.decode(encode(loaded, Prompt("a", "b"))) == "<s>U: a\n\nb</s>A:"
    assert special_tokens(loaded, list(loaded.ends)) == ["</s>"]


def lossy_tokenizer() -> Any:
    transformers: Any = import_module("transformers")
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}
    return transformers.BertTokenizer(vocab=vocabulary, eos_token="[SEP]")


def endless_tokenizer() -> Any:
    tokenizer = kinds.mistral_like()
    tokenizer.eos_token = None
    tokenizer.chat_template = None
    return tokenizer


def slow_tokenizer() -> Any:
    transformers: Any = import_module("transformers")
    return transformers.ByT5Tokenizer()


@pytest.mark.parametrize(
    ("tokenizer", "config", "cause"),
    [
        (lossy_tokenizer, {}, "cannot write every text"),
        (endless_tokenizer, {}, "no token that ends"),
        (slow_tokenizer, {}, "tokenizers library"),
        (kinds.mistral_like, {"vocab_size": 300}, "has tokens 0 to 299"),
    ],
    ids=["lossy", "endless", "slow", "too_large"],
)
def test_tokenizer_that_cannot_write_a_plan_is_refused(
    tokenizer: Callable[[], Any], config: dict[str, Any], cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        model_of(tokenizer(), **config)
