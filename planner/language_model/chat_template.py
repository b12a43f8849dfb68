"""A model's chat template, rendered once: what stands before the prompt, and what after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError, told

#: Stands for the prompt. No spaces at its ends, which templates strip.
PROMPT = "casewright-prompt-b3f1"
ANSWER = "casewright-answer-7c0e"


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """What a model is shown around a prompt, and what ends its answer.

    A template may write a system's turn, or today's date. Both stand before the prompt and stay
    as they were when the model was loaded, since what a prompt starts with is kept.

    Attributes:
        before: The text before the prompt, special tokens by their names.
        after: The text after it, up to where the answer starts.
        answered: What stands after an answer; empty where the template does not tell.
    """

    before: str
    after: str
    answered: str = ""

    @classmethod
    def of(cls, tokenizer: Any) -> ChatTemplate:
        """Render a tokenizer's template; without one, the prompt starts the text.

        Raises:
            InputError: The template cannot be rendered, or does not show what the user says once.
        """
        if not tokenizer.chat_template:
            return cls(tokenizer.bos_token or "", "")
        user = {"role": "user", "content": PROMPT}
        try:
            asked = _render(tokenizer, [user], add_generation_prompt=True)
        except Exception as error:
            raise InputError(
                f"The model's chat template cannot be rendered: {told(error).rstrip('.')}. It is "
                "given one turn, the user's. Mend chat_template in the model's folder, or remove "
                "it: the model is then given the prompt as it is."
            ) from error
        before, found, after = asked.partition(PROMPT)
        if not found or PROMPT in after:
            raise InputError(
                "The model's chat template does not show the user's turn once, as it is. Mend "
                "chat_template in the model's folder, or remove it: the model is then given the "
                "prompt as it is."
            )
        return cls(before, after, _answered(tokenizer, user))


def _answered(tokenizer: Any, user: dict[str, str]) -> str:
    """Return what stands after an answer."""
    try:
        whole = _render(tokenizer, [user, {"role": "assistant", "content": ANSWER}])
    except Exception:  # noqa: BLE001 - a template is code of the model's; this part may be absent
        return ""
    return whole.partition(ANSWER)[2]


def _render(tokenizer: Any, turns: Sequence[dict[str, str]], **settings: Any) -> str:
    # Templates of models that think aloud know this name; others do not look at it.
    text = tokenizer.apply_chat_template(turns, tokenize=False, enable_thinking=False, **settings)
    assert isinstance(text, str)
    return text
