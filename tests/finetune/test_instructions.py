"""The instructions of a training set: settings, shares and seeds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from casewright.errors import InputError
from casewright.finetune.instructions import InstructionSettings, instructions
from tests.support.instruction_files import seed_task, seed_tasks, write_lines


def config(path: Path, **fields: Any) -> InstructionSettings:
    source = {"reader": "hugging_face", "path": str(path)}
    return InstructionSettings.model_validate({"share": 1, "sources": [source], **fields})


def test_same_seed_gives_the_same_instructions_and_another_seed_others(tmp_path: Path) -> None:
    settings = config(seed_tasks(tmp_path, 80), share=0.5)
    first = instructions(settings, 3)
    assert first == instructions(settings, 3)
    assert first.examples != instructions(settings, 4).examples


@pytest.mark.parametrize(("share", "count"), [(0.1, 6), (0.4, 24), (0.41, 25), (1, 60)])
def test_instruction_share_is_relative_to_the_source_pool(
    tmp_path: Path, share: float, count: int
) -> None:
    result = instructions(config(seed_tasks(tmp_path, 60), evolved=0, share=share), 3)
    assert (len(result.examples), result.pool_size) == (count, 60)
    assert len({str(example.prompt) for example in result.examples}) == count


def test_evolved_share_is_as_requested_and_ids_and_prompts_are_unique(tmp_path: Path) -> None:
    rows = instructions(config(seed_tasks(tmp_path, 60), evolved=0.75), 1).examples
    assert Counter(row.task for row in rows) == {"instruction": 15, "instruction:evolved": 45}
    assert len({row.id for row in rows}) == 60
    assert len({str(row.prompt) for row in rows}) == 60
    assert all(row.source.startswith("hugging_face:") for row in rows)


def test_evolved_instructions_use_different_base_instructions_while_available(
    tmp_path: Path,
) -> None:
    rows = instructions(config(seed_tasks(tmp_path, 60), evolved=0.5, share=2 / 3), 1).examples
    bases = Counter(row.id.partition("~")[0] for row in rows)
    assert set(bases.values()) == {1}


def test_duplicate_long_and_non_text_instructions_are_omitted_and_counted(tmp_path: Path) -> None:
    tasks = [
        seed_task("Name a tree.", "An oak."),
        seed_task("name  a TREE.", "An elm."),
        seed_task("Say it.", "long " * 300),
        seed_task("Name a sign.", "An escape, \x1b."),
        seed_task("Ring \0.", "The bell."),
    ]
    file = write_lines(tmp_path / "x.jsonl", tasks)
    refused: Counter[str] = Counter()
    settings = config(file, evolved=0, max_characters=1000)
    (example,) = instructions(settings, 1, refused=refused).examples
    assert example.completion == "An oak."
    assert refused == {
        "hugging_face: a repeated prompt": 1,
        "hugging_face: longer than max_characters": 1,
        "hugging_face: control characters, or no Unicode": 2,
    }


def test_too_few_evolvable_instructions_raise_input_error_with_their_number(
    tmp_path: Path,
) -> None:
    file = write_lines(tmp_path / "x.jsonl", [seed_task("Draw a tree in characters.", "|")])
    with pytest.raises(InputError, match=r"1 evolved .* needed, and only 0 could be made\. Lower"):
        instructions(config(file, evolved=1, max_characters=30), 1)


def test_sources_without_usable_instructions_are_refused_with_the_reason(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "x.jsonl", [seed_task("Name a tree.", "An oak.")])
    with pytest.raises(InputError, match=r"none that can be used.*1, hugging_face: longer than"):
        instructions(config(file, max_characters=5), 1)


def test_instruction_sources_are_not_read_when_the_share_is_zero(tmp_path: Path) -> None:
    result = instructions(config(tmp_path / "absent.jsonl", share=0), 1)
    assert (result.examples, result.pool_size) == ([], 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sources": [{"reader": "bfcl", "path": "x"}]}, "'hugging_face'"),
        ({"sources": [{"path": ""}]}, "path"),
        ({"sources": [{"path": "x", "limit": 0}]}, "limit"),
        ({"sources": [{"path": "x", "columns": {"ask": "a"}}]}, "'prompt', 'input', 'answer'"),
        ({"evolved": 1.5}, "evolved"),
        ({"constraints": 4}, "constraints"),
        ({"shares": 4}, "shares"),
    ],
)
def test_invalid_instruction_settings_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        InstructionSettings.model_validate(fields)
