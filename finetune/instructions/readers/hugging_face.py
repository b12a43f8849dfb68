"""Reader of any data set of the ``datasets`` library: a name, or a local folder or file."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError, told
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.calls import Refuse

#: Column names of prompt and answer, in the order in which they are looked for: Alpaca, Dolly,
#: TRL's prompt/completion, question answering.
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
#: Column names of the text that an instruction is about.
_INPUTS = ("input", "context")
_DIALOGUES = ("messages", "conversations", "conversation")
_ASKING = ("system", "user", "human", "prompter")
_MODELS = ("assistant", "gpt", "model")
#: Self-Instruct's column: inputs and outputs of one instruction.
_INSTANCES = "instances"
#: The keys of a mapping of columns.
FIELDS = ("prompt", "input", "answer", "messages")
#: The library's builder for files of each ending.
BUILDERS = {
    ".jsonl": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
}


def check_fields(given: Mapping[str, str]) -> None:
    """Raise ``InputError`` where a mapping of columns has an unknown key."""
    if wrong := sorted(set(given) - set(FIELDS)):
        raise InputError(f"columns: {wrong} are no fields. Map any of {list(FIELDS)}.")


def columns_of(names: Collection[str], given: Mapping[str, str]) -> Mapping[str, str]:
    """Return column names by ``prompt``, ``answer``, perhaps ``input``; or by ``messages``.

    Args:
        given: The user's mapping, with the same keys; empty asks for the usual names.

    Raises:
        InputError: A given column does not exist, or no usual names do.
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
    return (f"{prompt}\n\n{about}" if prompt and about else prompt, answer)


def _first_exchange(messages: Any) -> tuple[str, str]:
    asked: list[str] = []
    for message in messages if isinstance(messages, Sequence) else [None]:
        if not isinstance(message, Mapping):
            raise InputError("A dialogue is no list of messages with role and content.")
        who = _text(message.get("role", message.get("from"))).lower()
        said = _text(message.get("content", message.get("value")))
        if who in _MODELS:
            return "\n\n".join(asked), said
        if who not in _ASKING:
            # A call of a tool: the answer is no text.
            break
        asked.append(said)
    return "", ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def read_hugging_face(
    path: Path | str,
    refuse: Refuse,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
) -> Iterator[Instruction]:
    """Yield the rows of a data set, as a stream.

    The library runs no code of a data set's repository (since its version 4, it cannot).

    Args:
        path: A name on the hub such as ``tatsu-lab/alpaca``, a folder, or a file of JSON Lines,
            JSON, Parquet, CSV or Arrow.
        refuse: Is given the reason for each row without prompt or answer.
        columns: The columns of the ``prompt``, its ``input`` and the ``answer``, or of the
            ``messages``; by default the usual names are looked for.

    Raises:
        InputError: There is no such data set, it cannot be reached or read, or its columns have
            other names.
        DependencyError: The library is not installed.
    """
    name = Path(path).name if Path(path).exists() else str(path)
    used: Mapping[str, str] | None = None
    with _as_input_errors(str(path), split):
        for number, row in enumerate(_load(str(path), split), 1):
            id_ = f"hugging_face:{name}:{split}:{number}"
            instances = row.get(_INSTANCES)
            for part in instances if isinstance(instances, list) else [{}]:
                try:
                    used = used or columns_of([*row, *part], columns or {})
                    prompt, answer = pair_of({**row, **part}, used)
                except InputError as error:
                    raise InputError(f"{path}, row {number}: {error}") from error
                if prompt and answer:
                    yield Instruction(id_, id_, prompt, answer)
                else:
                    refuse("empty answer" if prompt else "empty prompt")


def _load(path: str, split: str) -> Any:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DependencyError(
            "Data sets by name need the library datasets. Run: pip install 'casewright[finetune]'"
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


@contextmanager
def _as_input_errors(path: str, split: str) -> Iterator[None]:
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
