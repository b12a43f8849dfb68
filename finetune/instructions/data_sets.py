"""Reads instructions and their answers from data sets with the library ``datasets``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from casewright.errors import DependencyError, InputError, one_line
from casewright.finetune.instructions.instruction import Instruction

#: Kinds of columns: ``messages`` has dialogues; ``input`` has texts to which ``prompt`` applies.
ColumnKind = Literal["prompt", "input", "answer", "messages"]
#: Usual names of a prompt column, each with names of its answer column in order of preference.
_ANSWERS_BY_PROMPT = {
    "instruction": ("output", "response", "answer"),  # Alpaca's name is output, Dolly's is response
    "prompt": ("completion", "response"),  # TRL's name is completion
    "question": ("answer", "response"),
    "query": ("response",),
    "input": ("output",),  # without an instruction, ``input`` is the prompt
}
_INPUT_NAMES = ("input", "context")
_DIALOGUE_NAMES = ("messages", "conversations", "conversation")
_PROMPT_ROLES = ("system", "user", "human", "prompter")
_MODEL_ROLES = ("assistant", "gpt", "model")
#: The library's builder (file format) for each ending of a file's name.
BUILDERS = {".jsonl": "json", **{f".{name}": name for name in ("json", "parquet", "csv", "arrow")}}


def columns_of(
    names: Collection[str], columns: Mapping[ColumnKind, str]
) -> Mapping[ColumnKind, str]:
    """Return column names by kind: ``prompt``, ``answer``, optionally ``input``; or ``messages``.

    ``names`` has the names of all columns. ``columns`` is the recipe's choice; if there is none,
    the columns are found by their usual names. ``InputError`` if the data set lacks a chosen
    column, or its columns have no usual names.
    """
    if columns:
        if absent := sorted(set(columns.values()) - set(names)):
            raise InputError(
                f"columns: the data set has no columns {absent}. There are {sorted(names)}."
            )
        if "messages" not in columns and not {"prompt", "answer"} <= set(columns):
            raise InputError("columns: map prompt and answer, or messages.")
        return columns
    for name in _DIALOGUE_NAMES:
        if name in names:
            return {"messages": name}
    for prompt, answers in _ANSWERS_BY_PROMPT.items():
        if prompt in names and (answer := next((a for a in answers if a in names), None)):
            inputs = [n for n in _INPUT_NAMES if n in names and n not in (prompt, answer)]
            return {"prompt": prompt, "answer": answer, **({"input": inputs[0]} if inputs else {})}
    raise InputError(
        f"No usual columns are among {sorted(names)}. Map them, for example "
        'columns = {prompt = "…", answer = "…"}.'
    )


def pair_of(row: Mapping[str, Any], columns: Mapping[ColumnKind, str]) -> tuple[str, str]:
    """Return a row's prompt and answer; a missing text is empty.

    Both are empty for a dialogue without an answer. ``InputError`` if a dialogue is malformed.
    """
    if "messages" in columns:
        return _first_exchange(row.get(columns["messages"]))
    prompt, answer = _text(row.get(columns["prompt"])), _text(row.get(columns["answer"]))
    input_ = _text(row.get(columns["input"])) if "input" in columns else ""
    return (f"{prompt}\n\n{input_}" if prompt and input_ else prompt, answer)


def _first_exchange(messages: Any) -> tuple[str, str]:
    prompts: list[str] = []
    error_text = "A dialogue is no list of messages with role and content."
    if not isinstance(messages, list):
        raise InputError(error_text)
    for message in messages:
        if not isinstance(message, Mapping):
            raise InputError(error_text)
        role = _text(message.get("role", message.get("from"))).lower()
        content = _text(message.get("content", message.get("value")))
        if role in _MODEL_ROLES:
            return "\n\n".join(prompts), content
        if role not in _PROMPT_ROLES:
            # With a role such as ``function_call``, the model's first answer is a call, not a text.
            break
        prompts.append(content)
    return "", ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def read_data_set(
    path: Path | str,
    refuse: Callable[[str], None],
    *,
    split: str = "train",
    columns: Mapping[ColumnKind, str] | None = None,
) -> Iterator[Instruction]:
    """Yield the instructions of a data set as a stream; no code of the data set is run.

    Args:
        path: A name on the Hugging Face hub such as ``tatsu-lab/alpaca``, a folder, or a file of
            JSON Lines, JSON, Parquet, CSV or Arrow.
        refuse: Called for each row without prompt or answer, with the reason.
        columns: The columns' names by kind; by default, ``columns_of`` finds them.

    Raises:
        InputError: The data set cannot be found or read, or lacks the columns.
        DependencyError: The library ``datasets`` is not installed.
    """
    name = Path(path).name if Path(path).exists() else str(path)
    row_columns: Mapping[ColumnKind, str] | None = None
    logger = logging.getLogger("datasets")
    log_level = logger.level
    # The library also logs the errors that it raises, which are reported below.
    logger.setLevel(logging.CRITICAL + 1)
    try:
        for number, row in enumerate(_load(str(path), split), 1):
            try:
                row_columns = row_columns or columns_of(set(row), columns or {})
                prompt, answer = pair_of(row, row_columns)
            except InputError as error:
                raise InputError(f"{path}, row {number}: {error}") from error
            id_ = f"hugging_face:{name}:{split}:{number}"
            if prompt and answer:
                yield Instruction(id=id_, source=id_, prompt=prompt, answer=answer)
            else:
                refuse("empty answer" if prompt else "empty prompt")
    except (InputError, DependencyError):
        raise
    except Exception as error:  # the network, files and formats may cause any exception
        raise InputError(
            f"The data set {str(path)!r} (split {split!r}) cannot be read: "
            f"{one_line(error).rstrip('.')}. Give one of its splits, and a name such as "
            "tatsu-lab/alpaca with access to the hub, or a local folder or file."
        ) from error
    finally:
        logger.setLevel(log_level)


def _load(path: str, split: str) -> Any:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DependencyError(
            "Instructions need the library datasets. Run: pip install 'casewright[finetune]'"
        ) from error
    local = Path(path)
    if local.is_file():
        if (builder := BUILDERS.get(local.suffix.lower())) is None:
            raise InputError(
                f"{path} ends in none of {sorted(BUILDERS)}. Give a file of one of these "
                "forms, a folder, or a data set's name."
            )
        return load_dataset(builder, data_files=path, split=split, streaming=True)
    if not local.exists() and (local.is_absolute() or local.suffix.lower() in BUILDERS):
        raise InputError(f"{path} does not exist. Give a file, a folder, or a data set's name.")
    return load_dataset(path, split=split, streaming=True)
