"""Instructions from local data sets of the library ``datasets``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.instructions.data_sets import (
    columns_of,
    pair_of,
    read_data_set,
)
from tests.support.instruction_files import write_lines


@pytest.fixture(autouse=True)
def set_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def read_pairs(path: Path | str, **settings: Any) -> list[tuple[str, str]]:
    instructions = read_data_set(path, lambda reason: None, **settings)
    return [(instruction.prompt, instruction.answer) for instruction in instructions]


def test_json_lines_data_set_is_read_by_its_usual_columns(tmp_path: Path) -> None:
    rows = [
        {"instruction": "Name one.", "input": "oak, hen", "output": "hen"},
        {"instruction": "Name two.", "input": "", "output": ""},
    ]
    file = write_lines(tmp_path / "set.jsonl", rows)
    refused: Counter[str] = Counter()
    (instruction,) = read_data_set(file, lambda reason: refused.update([reason]))
    assert (instruction.prompt, instruction.answer) == ("Name one.\n\noak, hen", "hen")
    assert refused == {"empty answer": 1}


def test_parquet_dialogues_give_their_first_exchange(tmp_path: Path) -> None:
    from datasets import Dataset

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And?"},
    ]
    folder = tmp_path / "set"
    folder.mkdir()
    Dataset.from_list([{"messages": messages}]).to_parquet(folder / "train.parquet")
    assert read_pairs(folder) == [("Be brief.\n\nHello?", "Yes.")]
    assert read_pairs(folder / "train.parquet") == [("Be brief.\n\nHello?", "Yes.")]


def test_dialogue_answered_by_a_function_call_is_omitted(tmp_path: Path) -> None:
    turns = [("human", "Dig!"), ("function_call", "{}"), ("gpt", "Done.")]
    messages = [{"from": role, "value": text} for role, text in turns]
    assert read_pairs(write_lines(tmp_path / "set.jsonl", [{"conversations": messages}])) == []


def test_columns_with_other_names_are_read_by_a_mapping(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "set.jsonl", [{"frage": "Wer?", "antwort": "Ich.", "n": 1}])
    assert read_pairs(file, columns={"prompt": "frage", "answer": "antwort"}) == [("Wer?", "Ich.")]
    with pytest.raises(
        InputError, match=r"row 1: No usual columns are among .*'antwort'.*columns ="
    ):
        read_pairs(file)
    with pytest.raises(InputError, match=r"no columns \['warum'\]\. There are .*'frage'"):
        read_pairs(file, columns={"prompt": "frage", "answer": "warum"})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["instruction", "context", "response"], ("instruction", "response", "context")),
        (["prompt", "completion"], ("prompt", "completion", None)),
        (["question", "answer", "id"], ("question", "answer", None)),
        (["input", "output"], ("input", "output", None)),
    ],
)
def test_columns_of_recognises_usual_column_names(
    names: list[str], expected: tuple[str, str, str | None]
) -> None:
    columns = columns_of(names, {})
    assert (columns["prompt"], columns["answer"], columns.get("input")) == expected


def test_dialogue_without_role_and_content_raises_input_error() -> None:
    for messages in ("hello", ["hello"]):
        with pytest.raises(InputError, match="role and content"):
            pair_of({"messages": messages}, {"messages": "messages"})


def test_missing_unknown_or_broken_data_set_raises_input_error_naming_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"set\.jsonl does not exist"):
        read_pairs(tmp_path / "set.jsonl")
    text = tmp_path / "set.txt"
    text.write_text("hello", encoding="utf-8")
    with pytest.raises(InputError, match=r"set\.txt ends in none of"):
        read_pairs(text)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"a": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.jsonl' .* cannot be read"):
        read_pairs(broken)
    valid_file = write_lines(tmp_path / "good.jsonl", [{"prompt": "a", "completion": "b"}])
    with pytest.raises(InputError, match=r"split 'test'"):
        read_pairs(valid_file, split="test")
