"""Tokenization of a planner's prompts.

The prefix (``head``) of a prompt is the same for many requests, so that its key/value states can be
cached. So the prefix and the rest (``tail``) are tokenized separately, in training too. Each is
tokenized together with the adjacent text of the chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from casewright.errors import InputError, one_line
from casewright.planner.language_model.plain_tokenizer import PlainTokenizer
from casewright.planner.prompt import Prompt

#: Placeholders for a prompt and an answer: a template might strip spaces at a real text's ends.
PROMPT_MARK = "casewright-prompt-b3f1"
ANSWER_MARK = "casewright-answer-7c0e"
#: Maximum number of prefixes whose tokens are cached.
MAX_CACHED_HEADS = 32


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Text that a chat template writes around a prompt and after an answer.

    The template is rendered once, when the model is loaded, since the states of the prefix are
    cached. So a date in the template remains the date on which the model was loaded.

    Attributes:
        before: The text before the prompt, with special tokens by name.
        after: The text between the prompt and the answer.
        after_answer: The text after an answer; empty if the template has none.
    """

    before: str
    after: str
    after_answer: str = ""

    @classmethod
    def of(cls, tokenizer: Any) -> ChatTemplate:
        """Return a tokenizer's rendered template; without a template, only BOS precedes the prompt.

        Raise ``InputError`` if rendering fails or the user's turn does not occur exactly once.
        """
        if not tokenizer.chat_template:
            return cls(tokenizer.bos_token or "", "")
        user = {"role": "user", "content": PROMPT_MARK}
        try:
            text = _render_turns(tokenizer, [user], add_generation_prompt=True)
        except Exception as error:
            raise InputError(
                "The model's chat template cannot be rendered for a single user turn: "
                f"{one_line(error).rstrip('.')}. Correct chat_template in the model's folder, or "
                "remove it: the model then gets the plain prompt."
            ) from error
        before, prompt, after = text.partition(PROMPT_MARK)
        if not prompt or PROMPT_MARK in after:
            raise InputError(
                "The model's chat template does not contain the user's turn exactly once and "
                "unchanged. Correct chat_template in the model's folder, or remove it: the model "
                "then gets the plain prompt."
            )
        try:
            text = _render_turns(tokenizer, [user, {"role": "assistant", "content": ANSWER_MARK}])
        except Exception:  # noqa: BLE001 - some templates refuse an assistant's turn
            text = ""
        return cls(before, after, text.partition(ANSWER_MARK)[2])


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Tokens of a prompt: ``head`` is the prefix, and ``tail`` is the rest."""

    head: tuple[int, ...]
    tail: tuple[int, ...]


class PromptTokenizer:
    """Turns prompts into tokens. Thread-safe.

    Special tokens come only from the chat template, never from the text of a prompt. The BOS token
    occurs once, where the template has it.
    """

    def __init__(self, tokenizer: Any, plain: PlainTokenizer, template: ChatTemplate) -> None:
        self._plain = plain
        parts = _template_parts(tokenizer, plain, template)
        self._tokens_before, self._text_before, self._text_after, self._tokens_after = parts
        self._cached_head = lru_cache(MAX_CACHED_HEADS)(self._encode_head)

    def encode(self, prompt: Prompt) -> PromptTokens:
        """Return a prompt's tokens; the prefix's tokens are cached."""
        tail = (*self._plain.encode(prompt.tail + self._text_after), *self._tokens_after)
        return PromptTokens(self._cached_head(prompt.head), tail)

    def _encode_head(self, head: str) -> tuple[int, ...]:
        # The blank line belongs to the prefix, since tokenizers merge a line end with the text
        # before the line end.
        text = f"{self._text_before}{head}\n\n" if head else self._text_before
        return (*self._tokens_before, *self._plain.encode(text))


def _template_parts(
    tokenizer: Any, plain: PlainTokenizer, template: ChatTemplate
) -> tuple[list[int], str, str, list[int]]:
    """Return the template's tokens and text before the prompt, and the text and tokens after it.

    The texts reach from the prompt to the nearest special token on either side, and are tokenized
    together with the prompt. If the tokens then differ from those of template and prompt as one
    text, the texts are empty and the whole template is returned as tokens.
    """
    start = len(template.before)
    end = start + len(PROMPT_MARK)
    ids, spans = _encode(tokenizer, template.before + PROMPT_MARK + template.after)
    special_indices = [index for index, id_ in enumerate(ids) if id_ in plain.special_ids]
    # The tokens from ``first`` up to ``stop`` are between the nearest special tokens.
    first = max((index + 1 for index in special_indices if spans[index][1] <= start), default=0)
    stop = min((index for index in special_indices if spans[index][0] >= end), default=len(ids))
    text_before = template.before[spans[first - 1][1] if first else 0 :]
    text_after = template.after[: spans[stop][0] - end if stop < len(ids) else None]
    # Some tokenizers put a space before a text. So ``text_before`` is also tried with a space.
    for text in (text_before, f" {text_before}"):
        if plain.encode(text + PROMPT_MARK + text_after) == ids[first:stop]:
            return ids[:first], text, text_after, ids[stop:]
    return _encode(tokenizer, template.before)[0], "", "", _encode(tokenizer, template.after)[0]


def _encode(tokenizer: Any, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the ids of a text's tokens, and the range of the text that each token covers."""
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return list(encoding["input_ids"]), list(encoding["offset_mapping"])


def _render_turns(tokenizer: Any, turns: Sequence[dict[str, str]], **settings: Any) -> str:
    # Templates of reasoning models read ``enable_thinking``; other templates ignore it.
    text = tokenizer.apply_chat_template(turns, tokenize=False, enable_thinking=False, **settings)
    assert isinstance(text, str)
    return text
