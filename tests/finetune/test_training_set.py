from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.examples.training_set import (
    FORMAT,
    MANIFEST,
    TRAIN,
    VALIDATION,
    TrainingSet,
    file_entry,
    manifest_hash,
    read_training_set,
    write_training_set,
)
from casewright.planner import Prompt
from casewright.planner.prompt import prompt_hash

#: Texts that JSON, JSON Lines or Arrow might misread.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["", "null", "NaN", "\u2028\x85\n\r", "\\n\"'", "0", "[]", "👩‍👩‍👧"]
)


@st.composite
def examples(draw: st.DrawFn) -> TrainingExample:
    prompt = Prompt(draw(TEXTS), draw(TEXTS))
    id_, task, source, completion = (draw(TEXTS) for _ in range(4))
    return TrainingExample(id_, task, source, prompt, completion)


def set_of(train: list[TrainingExample], validation: list[TrainingExample]) -> TrainingSet:
    manifest = {
        "format": FORMAT,
        "prompt_hash": prompt_hash(),
        "files": {TRAIN: file_entry(train), VALIDATION: file_entry(validation)},
    }
    return TrainingSet(tuple(train), tuple(validation), manifest)


FIRST = TrainingExample("1", "plan", "q1", Prompt("tools", "question"), "s1 = no_evidence()")
SECOND = TrainingExample("2", "instruction", "made", Prompt("", "say hi"), "")
SET = set_of([FIRST], [SECOND])


@settings(max_examples=40, deadline=None)
@given(st.lists(examples(), max_size=4), st.lists(examples(), max_size=2))
def test_training_set_is_restored_from_its_folder(
    tmp_path_factory: pytest.TempPathFactory,
    train: list[TrainingExample],
    validation: list[TrainingExample],
) -> None:
    folder = tmp_path_factory.getbasetemp() / "written"
    write_training_set(set_of(train, validation), folder, force=True)
    restored = read_training_set(folder)
    assert restored == set_of(train, validation)
    assert restored.examples == (*train, *validation)


def test_manifest_hash_depends_on_the_examples_of_the_set() -> None:
    hashes = {manifest_hash(set_of(train, []).manifest) for train in ([FIRST], [SECOND], [])}
    assert len(hashes) == 3
    assert manifest_hash(set_of([FIRST], [SECOND]).manifest) == manifest_hash(SET.manifest)


@pytest.mark.parametrize("name", [TRAIN, VALIDATION])
def test_changed_training_set_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    write_training_set(SET, tmp_path / "set")
    file = tmp_path / "set" / name
    file.write_text(file.read_text(encoding="utf-8").replace("plan", "plans") + "\n")
    with pytest.raises(InputError, match=rf"{name} is not the file .* casewright finetune data"):
        read_training_set(tmp_path / "set")
    file.unlink()
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        read_training_set(tmp_path / "set")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt_hash": "another"}, "another template of the planner's prompt"),
        ({"format": 0}, "no manifest of format"),
        ({"files": {}}, "lacks 'train.jsonl'"),
        ({"files": None}, "lacks"),
    ],
    ids=["prompt", "format", "no-files", "null"],
)
def test_invalid_training_set_manifest_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    write_training_set(TrainingSet(SET.train, (), {**SET.manifest, **change}), tmp_path / "set")
    with pytest.raises(InputError, match=message):
        read_training_set(tmp_path / "set")


@pytest.mark.parametrize("text", ["", "[]", "{", None], ids=["empty", "list", "cut", "absent"])
def test_folder_without_a_manifest_is_no_training_set(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="casewright finetune data"):
        read_training_set(tmp_path)


def test_training_set_is_replaced_only_with_force(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "set"
    write_training_set(SET, folder)
    with pytest.raises(InputError, match="--force"):
        write_training_set(set_of([SECOND], []), folder)
    assert read_training_set(folder) == SET
    write_training_set(set_of([SECOND], []), folder, force=True)
    assert read_training_set(folder) == set_of([SECOND], [])
    # No temporary folder is left.
    assert [file.name for file in folder.parent.iterdir()] == ["set"]


def test_folder_with_other_files_is_refused_even_with_force(tmp_path: Path) -> None:
    write_training_set(SET, tmp_path / "set")
    (tmp_path / "set" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / TRAIN).write_text("mine", encoding="utf-8")
    for folder, other_file in ((tmp_path / "set", "notes.txt"), (tmp_path / "other", TRAIN)):
        names = sorted(file.name for file in folder.iterdir())
        with pytest.raises(InputError, match=other_file):
            write_training_set(SET, folder, force=True)
        assert sorted(file.name for file in folder.iterdir()) == names


def test_writing_a_training_set_to_a_file_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for path in (tmp_path / "file", tmp_path / "file" / "set"):
        with pytest.raises(InputError, match="is a file"):
            write_training_set(SET, path)


def test_training_set_in_an_empty_folder_has_the_default_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    write_training_set(SET, folder)
    assert read_training_set(folder) == SET
    umask = os.umask(0)
    os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask


def test_failed_write_of_a_training_set_leaves_the_old_set_unchanged(tmp_path: Path) -> None:
    invalid = TrainingExample("3", "plan", "q", Prompt("", "\ud800"), "")
    invalid_set = TrainingSet((FIRST, invalid), (), SET.manifest)
    write_training_set(SET, tmp_path / "set")
    with pytest.raises(InputError, match="Example '3', from 'q'"):
        write_training_set(invalid_set, tmp_path / "set", force=True)
    assert read_training_set(tmp_path / "set") == SET
    assert [file.name for file in tmp_path.iterdir()] == ["set"]
