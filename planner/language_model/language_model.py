"""A causal language model in memory: its network, its tokenizer, and its prompt format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, one_line
from casewright.planner.language_model.plain_tokenizer import PlainTokenizer
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

#: Text with characters of one to four bytes; a tokenizer that can write it can write any text.
SAMPLE = 's1 = a(b="\\"x\\" Ünï ﬁ \u2028 日本 \ue000 🧪\u200d\U0010fffd")\ns2 = c(d=s1.e, f=-1.5)'


class LanguageModel:
    """Causal language model with its tokenizer. Immutable.

    Attributes:
        network: The network, in evaluation mode and without gradients.
        device: Device of the network.
        context_length: Maximum number of tokens of the network's input; ``None`` if unknown.
        ends: Ids of the end tokens, without repetition. The first of them ends an answer in the
            chat template; training appends it to each plan.
        grammar_tokenizer: The tokenizer for llguidance, with one entry for each of the network's
            logits. This tokenizer never reads text as special tokens.

    Args:
        name: Name of the model, including the name of its adapter.
        network: A causal language model, which is set to evaluation mode.
        tokenizer: A tokenizer with a ``tokenizers`` backend and perhaps a chat template.
        identity: Text that changes when the files of the weights change; ``None`` if the weights
            were not read from files.

    Raises:
        InputError: The tokenizer has no ``tokenizers`` backend, has tokens that the network lacks,
            has no end token, or cannot write every text; or the chat template cannot be used.
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
        max_positions = getattr(config, "max_position_embeddings", None)
        self.context_length = int(max_positions) if max_positions else None
        output_layer = network.get_output_embeddings()
        # The number of logits may exceed the number of tokens.
        vocabulary_size = int(output_layer.weight.shape[0] if output_layer else config.vocab_size)
        _check_vocabulary(name, tokenizer, vocabulary_size)
        plain = PlainTokenizer.of(tokenizer.backend_tokenizer.to_str())
        template = ChatTemplate.of(tokenizer)
        parts = (tokenizer, network.generation_config, config)
        configured_ids = [getattr(part, "eos_token_id", None) for part in parts]
        self.ends = tuple(dict.fromkeys(_end_ids(configured_ids, tokenizer, template, plain)))
        if not self.ends:
            raise InputError(
                f"The tokenizer of {name!r} names no token that ends a text. "
                "Set eos_token in its tokenizer_config.json."
            )
        self.grammar_tokenizer = _grammar_tokenizer(name, plain, vocabulary_size, self.ends)
        self._prompts = PromptTokenizer(tokenizer, plain, template)

    def encode(self, prompt: Prompt) -> PromptTokens:
        """Return the tokens of a prompt in the chat template; the prefix's tokens are cached."""
        return self._prompts.encode(prompt)

    def encode_plan(self, text: str) -> list[int]:
        """Return the tokens of a plan, without an end token; ``decode`` restores the text."""
        return _encode_losslessly(self.grammar_tokenizer, text)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the exact text of a plan's tokens, without the end tokens."""
        ids = [token for token in tokens if token not in self.ends]
        return self.grammar_tokenizer.decode_bytes(ids).decode("utf-8", "replace")


def _check_vocabulary(name: str, tokenizer: Any, vocabulary_size: int) -> None:
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise InputError(
            f"The tokenizer of {name!r} ({type(tokenizer).__name__}) is not one of the tokenizers "
            "library, which grammars need. Put a tokenizer.json into the model's folder."
        )
    largest_id = max(tokenizer.get_vocab().values(), default=0)
    if largest_id >= vocabulary_size:
        raise InputError(
            f"The tokenizer of {name!r} has a token {largest_id}; the network has tokens 0 to "
            f"{vocabulary_size - 1}. Take the network's tokenizer, or resize its embedding."
        )


def _end_ids(
    configured_ids: Iterable[Any], tokenizer: Any, template: ChatTemplate, plain: PlainTokenizer
) -> Iterator[int]:
    """Yield the ids of the end tokens: first the chat template's id, then the configured ids."""
    answer_end = tokenizer(template.after_answer.lstrip(), add_special_tokens=False)["input_ids"]
    yield from (id_ for id_ in answer_end[:1] if id_ in plain.special_ids)
    for entry in configured_ids:
        ids: Iterable[Any] = entry if isinstance(entry, list | tuple) else [entry]
        # A configuration may name an id that the tokenizer lacks, or the id of an ordinary token.
        yield from (id_ for id_ in ids if id_ in plain.special_ids)


def _grammar_tokenizer(
    name: str, plain: PlainTokenizer, vocabulary_size: int, ends: Sequence[int]
) -> LLTokenizer:
    from llguidance import LLTokenizer

    try:
        tokenizer = LLTokenizer(plain.definition, n_vocab=vocabulary_size, eos_token=list(ends))
        ids = _encode_losslessly(tokenizer, SAMPLE)
        is_lossless = tokenizer.decode_bytes(ids) == SAMPLE.encode()
        problem = "" if is_lossless else "decoding its tokens gives another text"
    except Exception as error:  # noqa: BLE001 - the library documents no exceptions
        problem = one_line(error).rstrip(".")
    if problem:
        raise InputError(
            f"The tokenizer of {name!r} cannot write every text: {problem}. Use a model whose "
            "tokenizer knows every byte, such as Mistral, Llama, Qwen and GPT-2."
        )
    return tokenizer


def _encode_losslessly(tokenizer: LLTokenizer, text: str) -> list[int]:
    ids = tokenizer.tokenize_str(text)
    if tokenizer.decode_bytes(ids) == text.encode():
        return ids
    # The tokenizer normalizes some characters, or uses some (such as U+2581) as markers. The greedy
    # tokens have the exact bytes of the text.
    return tokenizer.greedy_tokenize(text)
