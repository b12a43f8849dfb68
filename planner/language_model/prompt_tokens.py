"""A planner's prompts as a model's tokens.

A prompt's head does not change between requests, and a model's key/value states for it are kept.
So both sides of the seam become tokens apart from each other, when a model is trained too. Around
them stands what the chat template writes: before the head and after the tail, tokens join as they
would in the whole text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from casewright.planner.language_model.chat_template import PROMPT, ChatTemplate
from casewright.planner.language_model.plain_text import PlainText
from casewright.planner.prompt import Prompt

#: Heads whose tokens are kept.
HEADS = 32


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A prompt as tokens.

    Attributes:
        head: The same for every prompt of one head.
        tail: What follows.
    """

    head: tuple[int, ...]
    tail: tuple[int, ...]


class PromptTokenizer:
    """Turns prompts into tokens; safe in several threads at once.

    What looks like a special token in a prompt is text. The template's own special tokens are
    special, and the text's first token stands once, where the template writes it.

    Args:
        tokenizer: The model's tokenizer.
        plain: Its vocabulary for text.
        template: What stands around a prompt.
    """

    def __init__(self, tokenizer: Any, plain: PlainText, template: ChatTemplate) -> None:
        self._plain = plain
        self._before, self._lead, self._trail, self._after = _seams(tokenizer, plain, template)
        self._head = lru_cache(HEADS)(self._encode_head)

    def encode(self, prompt: Prompt) -> PromptTokens:
        """Return a prompt's tokens, those of its head from a cache."""
        tail = (*self._plain.encode(prompt.tail + self._trail), *self._after)
        return PromptTokens(self._head(prompt.head), tail)

    def _encode_head(self, head: str) -> tuple[int, ...]:
        # The blank line belongs to the head: tokenizers join a line's end to what stands before it.
        text = f"{self._lead}{head}\n\n" if head else self._lead
        return (*self._before, *self._plain.encode(text))


def _seams(
    tokenizer: Any, plain: PlainText, template: ChatTemplate
) -> tuple[list[int], str, str, list[int]]:
    """Return the tokens before, the text up to the prompt, the text after it, the tokens after.

    The two texts stand between the prompt and the nearest special token on either side, and
    become tokens together with it. Where that does not give what the tokenizer itself makes of
    the whole, the template's parts are tokens of their own.
    """
    start = len(template.before)
    end = start + len(PROMPT)
    whole = _encode(tokenizer, template.before + PROMPT + template.after)
    marks = [place for place, (id_, _) in enumerate(whole) if id_ in plain.special]
    first = max((place + 1 for place in marks if whole[place][1][1] <= start), default=0)
    last = min((place for place in marks if whole[place][1][0] >= end), default=len(whole))
    lead = template.before[whole[first - 1][1][1] if first else 0 :]
    trail = template.after[: whole[last][1][0] - end if last < len(whole) else None]
    ids = [id_ for id_, _ in whole]
    # A tokenizer may put a space of its own before a text that starts there.
    for text in (lead, f" {lead}"):
        if plain.encode(text + PROMPT + trail) == ids[first:last]:
            return ids[:first], text, trail, ids[last:]
    return (
        [id_ for id_, _ in _encode(tokenizer, template.before)],
        "",
        "",
        [id_ for id_, _ in _encode(tokenizer, template.after)],
    )


def _encode(tokenizer: Any, text: str) -> list[tuple[int, tuple[int, int]]]:
    """Return each token's id, and from where to where it reaches in the text."""
    made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return list(zip(made["input_ids"], made["offset_mapping"], strict=True))
