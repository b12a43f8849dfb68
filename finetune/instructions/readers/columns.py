"""Prompts and answers of a row, by the names that instruction data gives its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from casewright.errors import InputError
from casewright.finetune.instructions.readers.self_instruct import with_input

#: Column names by what they hold, in the order in which they are looked for: Alpaca, Dolly,
#: Self-Instruct, TRL's prompt/completion, question answering.
_PAIRS = (
    ("instruction", "output"),
    ("instruction", "response"),
    ("instruction", "answer"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("question", "answer"),
    ("question", "response"),
    ("query", "response"),
    ("input", "output"),
)
#: What an instruction is about, where that has a column of its own.
_INPUTS = ("input", "context")
_DIALOGUES = ("messages", "conversations", "conversation")
_PEOPLE, _MODELS = ("user", "human", "prompter"), ("assistant", "gpt", "model")
#: What a mapping may name.
FIELDS = ("prompt", "input", "answer", "messages")


def columns_of(names: Collection[str], given: Mapping[str, str]) -> Mapping[str, str]:
    """Return which column holds what: ``prompt``, ``answer``, perhaps ``input``; or ``messages``.

    Args:
        names: The columns that there are.
        given: What the user says of them, with the same keys; empty asks for the usual names.

    Raises:
        InputError: What was given is not there, or no usual names are.
    """
    if given:
        if wrong := sorted(set(given) - set(FIELDS)):
            raise InputError(f"columns: {wrong} are no fields. Map any of {list(FIELDS)}.")
        if absent := sorted(set(given.values()) - set(names)):
            raise InputError(f"columns: {absent} are no columns. There are {sorted(names)}.")
        if "messages" not in given and not {"prompt", "answer"} <= set(given):
            raise InputError("columns: map prompt and answer, or messages.")
        return dict(given)
    for name in _DIALOGUES:
        if name in names:
            return {"messages": name}
    for prompt, answer in _PAIRS:
        if prompt in names and answer in names:
            about = next((n for n in _INPUTS if n in names and n not in (prompt, answer)), None)
            return {"prompt": prompt, "answer": answer, **({"input": about} if about else {})}
    raise InputError(
        f"No usual columns are among {sorted(names)}. Say which hold what, for example "
        'columns = {prompt = "…", answer = "…"}.'
    )


def pair_of(row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[str, str]:
    """Return a row's prompt and answer, either empty where the row has none.

    Raises:
        InputError: A dialogue is no list of messages.
    """
    if "messages" in columns:
        return _first_exchange(row.get(columns["messages"]))
    prompt, answer = _text(row.get(columns["prompt"])), _text(row.get(columns["answer"]))
    about = _text(row.get(columns["input"])) if "input" in columns else ""
    return (with_input(prompt, about) if prompt else "", answer)


def _first_exchange(messages: Any) -> tuple[str, str]:
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InputError("A dialogue is no list of messages with role and content.")
    asked: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping):
            raise InputError("A dialogue's message is no object with role and content.")
        who = _text(message.get("role", message.get("from"))).lower()
        said = _text(message.get("content", message.get("value")))
        if who in _MODELS:
            return "\n\n".join(asked), said
        # The system's words, and the person's.
        if who == "system" or who in _PEOPLE:
            asked.append(said)
    return "", ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
