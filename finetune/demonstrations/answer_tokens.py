"""Tokens of a context and its answers; the answers' tokens start where the answers differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError
from casewright.planner.language_model.plain_tokenizer import PlainTokenizer


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """Tokens of a context with its answers.

    Attributes:
        context: Tokens that all answers share; at least one.
        answers: The tokens after the context, a non-empty sequence for each answer.
        context_token_counts: For each answer, the number of its first tokens that belong to the
            context. They are not in ``context``: another answer has other tokens there.
    """

    context: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    context_token_counts: tuple[int, ...]

    @property
    def max_length(self) -> int:
        """The number of tokens of the context with its longest answer."""
        return len(self.context) + max(map(len, self.answers))

    @property
    def token_count(self) -> int:
        """The number of tokens of the context with all of its answers."""
        return len(self.context) + sum(map(len, self.answers))


class AnswerTokenizer:
    """Tokenizes contexts with answers; special tokens in these texts are read as plain text.

    A token that covers any character of the answer belongs to the answer. ``tokenizer`` is from
    transformers, with a ``tokenizers`` backend.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._plain = PlainTokenizer.of(tokenizer.backend_tokenizer.to_str())
        bos = tokenizer.bos_token_id
        # If only the chat template adds the BOS token, the model was still trained with it.
        template = tokenizer.chat_template
        starts_with_bos = bos in tokenizer("")["input_ids"][:1] or "bos_token" in str(template)
        self._bos = (bos,) if starts_with_bos and bos is not None else ()
        # If transformers' tokenizer puts a space before a text, ``tokenize`` puts it there too.
        word_ids = tokenizer("Q", add_special_tokens=False)["input_ids"]
        adds_space = word_ids != self._plain.encode("Q") and word_ids == self._plain.encode(" Q")
        self._space = " " if adds_space else ""

    def tokenize(self, context: str, answers: Sequence[str]) -> AnswerTokens:
        """Return the tokens of a context with its answers; ``InputError`` if an answer is blank."""
        boundary = len(self._space + context)
        texts = [self._space + context + answer for answer in answers]
        # ``tokenizers`` raises an error for lone surrogates.
        encodable = [text.encode("utf-8", "replace").decode() for text in texts]
        encodings = self._plain.tokenizer.encode_batch(encodable, add_special_tokens=False)
        answer_starts = []
        for answer, encoding in zip(answers, encodings, strict=True):
            offsets = enumerate(encoding.offsets)
            start = next((index for index, (_, end) in offsets if end > boundary), None)
            if not answer.strip() or start is None:
                raise InputError("An answer has no text. Leave it out, or write it.")
            answer_starts.append(start)
        ids = [encoding.ids for encoding in encodings]
        shared_count = min(answer_starts)
        while any(other[:shared_count] != ids[0][:shared_count] for other in ids):
            shared_count -= 1
        answer_tokens = tuple(tuple(token_ids[shared_count:]) for token_ids in ids)
        counts = tuple(start - shared_count for start in answer_starts)
        return AnswerTokens((*self._bos, *ids[0][:shared_count]), answer_tokens, counts)
