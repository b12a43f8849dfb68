"""A causal language model in memory: its network, its tokens, and how it reads prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, told
from casewright.planner.language_model.plain_text import PlainText
from casewright.planner.language_model.prompt_tokens import (
    ChatTemplate,
    PromptTokenizer,
    PromptTokens,
)
from casewright.planner.prompt import Prompt

if TYPE_CHECKING:
    import torch
    from llguidance import LLTokenizer
    from transformers import PreTrainedModel

#: Characters of one to four bytes: a tokenizer that can write these can write any.
SAMPLE = 's1 = a(b="\\"x\\" Ünï ﬁ \u2028 日本 \ue000 🧪\u200d\U0010fffd")\ns2 = c(d=s1.e, f=-1.5)'


class LanguageModel:
    """A causal language model and its tokenizer; immutable.

    Attributes:
        network: In evaluation mode, its parameters without gradients.
        device: Device of the network.
        positions: Most tokens that the network can read; ``None`` if it does not say.
        ends: Ids of the end tokens, without repetition: first the one that its chat template writes
            after an answer, which is the one to train it with.
        grammar_tokenizer: The vocabulary for llguidance, of the size of the network's logits. Text
            that looks like a special token is text there too.

    Args:
        name: Where it comes from, adapter included.
        network: A causal language model; it is put in evaluation mode.
        tokenizer: A tokenizer with a ``tokenizers`` backend, and the chat template, if any.
        identity: Distinguishes its weights from others' as long as the files that they were read
            from are not written anew; ``None`` if they were not read from files.

    Raises:
        InputError: The tokenizer has another backend, has tokens that the network has not, has no
            end token, or cannot write any text; or the chat template cannot be used.
    """

    def __init__(
        self, name: str, network: PreTrainedModel, tokenizer: Any, *, identity: str | None = None
    ) -> None:
        self.name = name
        self.identity = identity
        self.network = network.eval().requires_grad_(False)
        self.device: torch.device = network.device
        self.tokenizer = tokenizer
        # Multimodal models keep their language model's settings in a part of their own.
        config: Any = network.config.get_text_config()
        most = getattr(config, "max_position_embeddings", None)
        self.positions = int(most) if most else None
        head = network.get_output_embeddings()
        size = int(head.weight.shape[0] if head else config.vocab_size)
        _check_vocabulary(name, tokenizer, size)
        plain = PlainText.of(tokenizer.backend_tokenizer.to_str())
        template = ChatTemplate.of(tokenizer)
        named = (
            tokenizer.eos_token_id,
            getattr(network.generation_config, "eos_token_id", None),
            getattr(config, "eos_token_id", None),
        )
        self.ends = tuple(dict.fromkeys(_ends(named, tokenizer, template, plain)))
        if not self.ends:
            raise InputError(
                f"The tokenizer of {name!r} names no token that ends a text. "
                "Set eos_token in its tokenizer_config.json."
            )
        self.grammar_tokenizer = _grammar_tokenizer(name, plain, size, self.ends)
        self._prompts = PromptTokenizer(tokenizer, plain, template)

    def encode(self, prompt: Prompt) -> PromptTokens:
        """Return a prompt's tokens within the chat template, those of its head from a cache."""
        return self._prompts.encode(prompt)

    def encode_plan(self, text: str) -> list[int]:
        """Return the tokens of a plan as decoding writes them, without an end token.

        ``decode`` gives the same text back.
        """
        return _encode_exactly(self.grammar_tokenizer, text)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the exact text of a plan's tokens, without the end tokens."""
        written = [token for token in tokens if token not in self.ends]
        return self.grammar_tokenizer.decode_bytes(written).decode("utf-8", "replace")


def _check_vocabulary(name: str, tokenizer: Any, size: int) -> None:
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise InputError(
            f"The tokenizer of {name!r} ({type(tokenizer).__name__}) is not one of the tokenizers "
            "library, which grammars need. Put a tokenizer.json into the model's folder."
        )
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= size:
        raise InputError(
            f"The tokenizer of {name!r} has a token {largest}, and the network knows tokens 0 to "
            f"{size - 1}. Take the tokenizer that belongs to it, or resize the network's embedding."
        )


def _ends(
    named: Iterable[Any], tokenizer: Any, template: ChatTemplate, plain: PlainText
) -> Iterator[int]:
    """Yield the ids of the tokens that end an answer."""
    after = tokenizer(template.answered.lstrip(), add_special_tokens=False)["input_ids"]
    yield from (id_ for id_ in after[:1] if id_ in plain.special)
    for entry in named:
        ids: Iterable[Any] = entry if isinstance(entry, list | tuple) else [entry]
        # A configuration may name a token that the tokenizer lacks, or one that stands for text.
        yield from (id_ for id_ in ids if id_ in plain.special)


def _grammar_tokenizer(name: str, plain: PlainText, size: int, ends: Sequence[int]) -> LLTokenizer:
    from llguidance import LLTokenizer

    try:
        tokenizer = LLTokenizer(plain.definition, n_vocab=size, eos_token=list(ends))
        written = _encode_exactly(tokenizer, SAMPLE)
        same = tokenizer.decode_bytes(written) == SAMPLE.encode()
        why = "" if same else "other text comes back"
    except Exception as error:  # noqa: BLE001 - the library raises what it likes
        why = told(error).rstrip(".")
    if why:
        raise InputError(
            f"The tokenizer of {name!r} cannot write any text: {why}. Take a model whose tokenizer "
            "knows every byte, as those of Mistral, Llama, Qwen and GPT-2 do."
        )
    return tokenizer


def _encode_exactly(tokenizer: LLTokenizer, text: str) -> list[int]:
    ids = tokenizer.tokenize_str(text)
    if tokenizer.decode_bytes(ids) == text.encode():
        return ids
    # It normalizes some characters, or uses them otherwise, such as U+2581.
    return tokenizer.greedy_tokenize(text)
