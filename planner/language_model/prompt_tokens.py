"""Tokenization of a planner's prompts.

The prefix (``head``) of a prompt is the same for many requests, and a model's key/value states for
it are cached. So prefix and ``tail`` are tokenized separately, in training too. Each is tokenized
together with the adjacent text of the chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from casewright.errors import InputError, told
from casewright.planner.language_model.plain_text import PlainText
from casewright.planner.prompt import Prompt

#: Placeholder of the prompt, without white space at the ends, which templates strip.
PROMPT = "casewright-prompt-b3f1"
ANSWER = "casewright-answer-7c0e"
#: Number of prefixes whose tokens are cached.
HEADS = 32


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Text around a prompt and after an answer.

    A template may write a system turn or the date before the prompt. These stay as they were when
    the model was loaded, since the prefix of a prompt is cached.

    Attributes:
        before: The text before the prompt, with special tokens by name.
        after: The text between the prompt and the answer.
        answered: The text after an answer; empty if the template has none.
    """

    before: str
    after: str
    answered: str = ""

    @classmethod
    def of(cls, tokenizer: Any) -> ChatTemplate:
        """Return the rendered template of a tokenizer; without one, the prompt starts the text.

        Raises:
            InputError: The template cannot be rendered, or does not contain the user's turn once.
        """
        if not tokenizer.chat_template:
            return cls(tokenizer.bos_token or "", "")
        user = {"role": "user", "content": PROMPT}
        try:
            text = _render(tokenizer, [user], add_generation_prompt=True)
        except Exception as error:
            raise InputError(
                "The model's chat template cannot be rendered for a single user turn: "
                f"{told(error).rstrip('.')}. Correct chat_template in the model's folder, or "
                "remove it: the model then gets the plain prompt."
            ) from error
        before, prompt, after = text.partition(PROMPT)
        if not prompt or PROMPT in after:
            raise InputError(
                "The model's chat template does not contain the user's turn exactly once and "
                "unchanged. Correct chat_template in the model's folder, or remove it: the model "
                "then gets the plain prompt."
            )
        try:
            text = _render(tokenizer, [user, {"role": "assistant", "content": ANSWER}])
        except Exception:  # noqa: BLE001 - a template is the model's code; it may lack this part
            text = ""
        return cls(before, after, text.partition(ANSWER)[2])


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Prompt as tokens, in two parts: those of the prefix, and the rest."""

    head: tuple[int, ...]
    tail: tuple[int, ...]


class PromptTokenizer:
    """Turns prompts into tokens. Thread-safe.

    The text of a prompt never becomes a special token; the template's special tokens do. The BOS
    token occurs once, where the template has it.
    """

    def __init__(self, tokenizer: Any, plain: PlainText, template: ChatTemplate) -> None:
        self._plain = plain
        self._before, self._lead, self._trail, self._after = _seams(tokenizer, plain, template)
        self._head = lru_cache(HEADS)(self._encode_head)

    def encode(self, prompt: Prompt) -> PromptTokens:
        """Return a prompt's tokens; those of the prefix are cached."""
        tail = (*self._plain.encode(prompt.tail + self._trail), *self._after)
        return PromptTokens(self._head(prompt.head), tail)

    def _encode_head(self, head: str) -> tuple[int, ...]:
        # The blank line belongs to the prefix: tokenizers merge line ends with earlier text.
        text = f"{self._lead}{head}\n\n" if head else self._lead
        return (*self._before, *self._plain.encode(text))


def _seams(
    tokenizer: Any, plain: PlainText, template: ChatTemplate
) -> tuple[list[int], str, str, list[int]]:
    """Return the template's tokens and text before the prompt, and its text and tokens after it.

    The texts reach from the prompt to the nearest special token on either side, and are tokenized
    together with the prompt. If that differs from the tokenizer's own tokens of the whole text, the
    parts of the template are tokenized separately.
    """
    start = len(template.before)
    end = start + len(PROMPT)
    ids, spans = _encode(tokenizer, template.before + PROMPT + template.after)
    special = [index for index, id_ in enumerate(ids) if id_ in plain.special]
    first = max((index + 1 for index in special if spans[index][1] <= start), default=0)
    last = min((index for index in special if spans[index][0] >= end), default=len(ids))
    lead = template.before[spans[first - 1][1] if first else 0 :]
    trail = template.after[: spans[last][0] - end if last < len(ids) else None]
    # A tokenizer may put a space before a text that starts there.
    for text in (lead, f" {lead}"):
        if plain.encode(text + PROMPT + trail) == ids[first:last]:
            return ids[:first], text, trail, ids[last:]
    return _encode(tokenizer, template.before)[0], "", "", _encode(tokenizer, template.after)[0]


def _encode(tokenizer: Any, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the ids of a text's tokens, and the range of the text that each covers."""
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return list(encoding["input_ids"]), list(encoding["offset_mapping"])


def _render(tokenizer: Any, turns: Sequence[dict[str, str]], **settings: Any) -> str:
    # Templates of reasoning models use this name; others ignore it.
    text = tokenizer.apply_chat_template(turns, tokenize=False, enable_thinking=False, **settings)
    assert isinstance(text, str)
    return text
