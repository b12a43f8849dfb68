"""A context and its answers as tokens, of which all answers share the context's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError
from casewright.planner.language_model.plain_text import PlainText


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """Tokens of a context with its answers.

    Attributes:
        context: What all answers begin with; at least one token.
        answers: What follows it, a sequence an answer; none is empty.
        own: How many of each sequence's first tokens belong to the context alone: more than none
            where a tokenizer joins the context's end to one answer, and not to another.
    """

    context: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    own: tuple[int, ...]

    @property
    def longest(self) -> int:
        """Tokens of the context with its longest answer."""
        return len(self.context) + max(len(answer) for answer in self.answers)


class AnswerTokenizer:
    """Turns contexts with answers into tokens, as the tokenizer would the whole text.

    A token that holds any character of the answer is the answer's. What looks like a special token
    is text.

    Args:
        tokenizer: A tokenizer of transformers with a ``tokenizers`` backend.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._plain = PlainText.of(tokenizer.backend_tokenizer.to_str())
        begin = tokenizer.bos_token_id
        # A model that is told to begin by its chat template alone has seen no text without.
        template = tokenizer.chat_template
        begins = begin in tokenizer("")["input_ids"][:1] or "bos_token" in str(template)
        self._before = (begin,) if begins and begin is not None else ()
        word = tokenizer("Q", add_special_tokens=False)["input_ids"]
        spaced = word != self._plain.encode("Q") and word == self._plain.encode(" Q")
        self._lead = " " if spaced else ""

    def answers(self, context: str, answers: Sequence[str]) -> AnswerTokens:
        """Return the tokens of a context with what follows it.

        Raises:
            InputError: An answer has no text, or nothing stands before it.
        """
        seam = len(self._lead + context)
        result = self._encode([self._lead + context + answer for answer in answers])
        starts = []
        for answer, encoding in zip(answers, result, strict=True):
            ends = [end for _, end in encoding.offsets]
            own = next((index for index, end in enumerate(ends) if end > seam), None)
            if not answer.strip() or own is None:
                raise InputError("An answer has no text. Leave it out, or say what it is.")
            starts.append(own)
        ids = [encoding.ids for encoding in result]
        shared = min(starts)
        while any(other[:shared] != ids[0][:shared] for other in ids):
            shared -= 1
        whole = (*self._before, *ids[0][:shared])
        if not whole:
            raise InputError(
                "An answer stands at the beginning of its prompt, and the model's tokenizer puts "
                "no token before it. Give the question's form a text before the answer."
            )
        return AnswerTokens(
            whole,
            tuple(tuple(item[shared:]) for item in ids),
            tuple(start - shared for start in starts),
        )

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        # Half a surrogate pair is no text; the library would raise.
        whole = [text.encode("utf-8", "replace").decode() for text in texts]
        results: list[Any] = self._plain.tokenizer.encode_batch(whole, add_special_tokens=False)
        return results
