"""Any data set of the ``datasets`` library: by its name, or a local folder or file."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError, told
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.records import Refuse

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
_ASKING = ("system", "user", "human", "prompter")
_MODELS = ("assistant", "gpt", "model")
#: What a mapping may name.
FIELDS = ("prompt", "input", "answer", "messages")


def check_fields(given: Mapping[str, str]) -> None:
    """Raise ``InputError`` where a mapping of columns has a field that there is not."""
    if wrong := sorted(set(given) - set(FIELDS)):
        raise InputError(f"columns: {wrong} are no fields. Map any of {list(FIELDS)}.")


def columns_of(names: Collection[str], given: Mapping[str, str]) -> Mapping[str, str]:
    """Return which column holds what: ``prompt``, ``answer``, perhaps ``input``; or ``messages``.

    Args:
        given: What the user says of them, with the same keys; empty asks for the usual names.

    Raises:
        InputError: What was given is not there, or no usual names are.
    """
    if given:
        check_fields(given)
        if absent := sorted(set(given.values()) - set(names)):
            raise InputError(f"columns: {absent} are no columns. There are {sorted(names)}.")
        if "messages" not in given and not {"prompt", "answer"} <= set(given):
            raise InputError("columns: map prompt and answer, or messages.")
        return given
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


def with_input(instruction: str, given: str) -> str:
    """Return an instruction with what it is about, if anything, below a blank line."""
    return f"{instruction}\n\n{given}" if given else instruction


def _first_exchange(messages: Any) -> tuple[str, str]:
    asked: list[str] = []
    for message in messages if isinstance(messages, Sequence) else [None]:
        if not isinstance(message, Mapping):
            raise InputError("A dialogue is no list of messages with role and content.")
        who = _text(message.get("role", message.get("from"))).lower()
        said = _text(message.get("content", message.get("value")))
        if who in _MODELS:
            return "\n\n".join(asked), said
        if who in _ASKING:
            asked.append(said)
    return "", ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


#: The library's builder for files of each ending.
_BUILDERS = {
    ".jsonl": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
}


def read_hugging_face(
    path: Path | str,
    refuse: Refuse,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
) -> Iterator[Instruction]:
    """Yield the rows of a data set, as a stream: nothing is kept but what is looked at.

    The library runs no code of a data set's repository (since its version 4, it cannot).

    Args:
        path: A name on the hub such as ``tatsu-lab/alpaca``, a folder, or a file of JSON Lines,
            JSON, Parquet, CSV or Arrow.
        refuse: Told of rows without prompt or answer.
        columns: Which column holds the ``prompt``, its ``input`` and the ``answer``, or the
            ``messages``; by default the usual names are looked for.

    Raises:
        InputError: There is no such data set, it cannot be reached or read, or its columns have
            other names.
        DependencyError: The library is not installed.
    """
    name = Path(path).name if Path(path).exists() else str(path)
    with _told_in_errors(str(path), split):
        rows = iter(_load(str(path), split))
    found: Mapping[str, str] | None = None
    number = 0
    while True:
        # As it reads while it goes.
        with _told_in_errors(str(path), split):
            row = next(rows, None)
        if row is None:
            return
        number += 1
        try:
            found = found or columns_of(list(row), columns or {})
            prompt, answer = pair_of(row, found)
        except InputError as error:
            raise InputError(f"{path}, row {number}: {error}") from error
        if not prompt or not answer:
            refuse("empty answer" if prompt else "empty prompt")
            continue
        id_ = f"hugging_face:{name}:{split}:{number}"
        yield Instruction(id_, id_, prompt, answer)


def _load(path: str, split: str) -> Any:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DependencyError(
            "Data sets by name need the library datasets. Run: pip install 'casewright[finetune]'"
        ) from error
    local = Path(path)
    if local.is_file():
        if (builder := _BUILDERS.get(local.suffix.lower())) is None:
            raise InputError(
                f"{path} ends in none of {sorted(_BUILDERS)}. Give a file of one of these "
                "forms, a folder, or a data set's name."
            )
        return load_dataset(builder, data_files=path, split=split, streaming=True)
    if not local.exists() and (local.is_absolute() or local.suffix.lower() in _BUILDERS):
        raise InputError(f"{path} does not exist. Give a file, a folder, or a data set's name.")
    return load_dataset(path, split=split, streaming=True)


@contextmanager
def _told_in_errors(path: str, split: str) -> Iterator[None]:
    """Raise ``InputError`` for whatever the library raises, and keep it from logging it too."""
    logger = logging.getLogger("datasets")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except (InputError, DependencyError):
        raise
    except Exception as error:  # whatever network, files and formats give
        raise InputError(
            f"The data set {path!r} (split {split!r}) cannot be read: {told(error).rstrip('.')}. "
            "Give a name such as tatsu-lab/alpaca with access to the hub, or a local folder or "
            "file."
        ) from error
    finally:
        logger.setLevel(before)
