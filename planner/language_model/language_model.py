"""A causal language model in memory: its network, its tokenizer, and its prompt format."""

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

#: Characters of one to four bytes; a tokenizer that can write these can write any text.
SAMPLE = 's1 = a(b="\\"x\\" Ünï ﬁ \u2028 日本 \ue000 🧪\u200d\U0010fffd")\ns2 = c(d=s1.e, f=-1.5)'


class LanguageModel:
    """Causal language model with its tokenizer. Immutable.

    Attributes:
        network: The network, in evaluation mode and without gradients.
        device: Device of the network.
        positions: Length of the network's context in tokens; ``None`` if unknown.
        ends: Ids of the end tokens, without repetition. The first is the one that the chat template
            writes after an answer, which is used in training.
        grammar_tokenizer: The vocabulary for llguidance, with the size of the network's logits.
            Text that looks like a special token is plain text in it too.

    Args:
        name: Name of the model and of its adapter.
        network: A causal language model, which is set to evaluation mode.
        tokenizer: A tokenizer with a ``tokenizers`` backend and perhaps a chat template.
        identity: Identifies the weights, as long as their files do not change; ``None`` if the
            weights were not read from files.

    Raises:
        InputError: The tokenizer has another backend, has tokens that the network lacks, has no end
            token, or cannot write every text; or the chat template cannot be used.
    """

    def __init__(
        self, name: str, network: PreTrainedModel, tokenizer: Any, *, identity: str | None = None
    ) -> None:
        self.name = name
        self.identity = identity
        self.network = network.eval().requires_grad_(False)
        self.device: torch.device = network.device
        self.tokenizer = tokenizer
        # Multimodal models have the language model's settings in a separate section.
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
        """Return a prompt's tokens within the chat template; those of the prefix are cached."""
        return self._prompts.encode(prompt)

    def encode_plan(self, text: str) -> list[int]:
        """Return the tokens of a plan as in decoding, without an end token.

        ``decode`` returns the same text.
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
    """Yield the ids of the end tokens of an answer."""
    after = tokenizer(template.answered.lstrip(), add_special_tokens=False)["input_ids"]
    yield from (id_ for id_ in after[:1] if id_ in plain.special)
    for entry in named:
        ids: Iterable[Any] = entry if isinstance(entry, list | tuple) else [entry]
        # A configuration may name a token that the tokenizer lacks, or a token for text.
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
            f"The tokenizer of {name!r} cannot write every text: {why}. Use a model whose "
            "tokenizer knows every byte, such as Mistral, Llama, Qwen and GPT-2."
        )
    return tokenizer


def _encode_exactly(tokenizer: LLTokenizer, text: str) -> list[int]:
    ids = tokenizer.tokenize_str(text)
    if tokenizer.decode_bytes(ids) == text.encode():
        return ids
    # The tokenizer normalizes some characters, or uses them itself, such as U+2581.
    return tokenizer.greedy_tokenize(text)
