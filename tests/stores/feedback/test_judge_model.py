"""Saving and loading of the offline judge's model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.stores.feedback import JudgeModel
from casewright.stores.feedback.features import FIRST, LATER


def shipped() -> dict[str, Any]:
    model = JudgeModel.shipped()
    return {
        "format": 1,
        "first": model.first.to_json(),
        "later": model.later.to_json(),
        "training": dict(model.training),
    }


def judge_json(**parts: Any) -> str:
    return json.dumps({**shipped(), **parts})


def first_json(**parts: Any) -> str:
    return judge_json(first={**shipped()["first"], **parts})


def test_judge_model_is_unchanged_after_save_and_load(tmp_path: Path) -> None:
    file = tmp_path / "new" / "judge.json"
    JudgeModel.shipped().save(file)
    assert JudgeModel.load(file) == JudgeModel.shipped()
    assert JudgeModel.load(str(file)) == JudgeModel.shipped()
    second_file = tmp_path / "again.json"
    JudgeModel.load(file).save(second_file)
    assert second_file.read_bytes() == file.read_bytes()


def test_shipped_judge_model_has_features_thresholds_and_better_figures_than_controls() -> None:
    model = JudgeModel.shipped()
    assert tuple(model.first.weights) == FIRST
    assert tuple(model.later.weights) == LATER
    assert 0 < model.first.threshold < 1
    assert 0 < model.later.threshold < 1
    data_sets = model.training["sets"]
    assert {"musique", "hotpotqa", "2wikimultihop", "code"} <= set(data_sets)
    assert all(data_set["licence"] for data_set in data_sets.values())
    for name, by_strategy in model.training["test_figures"].items():
        for figures in by_strategy.values():
            assert figures["questions"] == data_sets[name]["questions_test"]
            assert figures["auc"] > figures["auc_control"]
            assert figures["brier"] < figures["brier_base_rate"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no judge"),
        ("[]", "holds no judge"),
        ("null", "holds no judge"),
        ("{}", "holds no judge"),
        ("[" * 100_000, "holds no judge"),
        (judge_json(format=2), "format 2"),
        (judge_json(format="x"), "format 'x'"),
        (judge_json(first={}), "holds no judge"),
        (judge_json(later=None), "holds no judge"),
        (judge_json(training=[]), "holds no judge"),
        (first_json(weights={"gap_best": 1.0, "shoe_size": 1.0}), "shoe_size"),
        (first_json(weights={"new_words": 1.0}), "new_words"),
        (first_json(weights=[1.0]), "holds no judge"),
        (first_json(bias=None), "holds no judge"),
        (first_json(bias=float("nan")), "not finite"),
        (first_json(weights={"gap_best": float("inf")}), "not finite"),
        (first_json(threshold=1.5), "threshold"),
    ],
    ids=range(17),
)
def test_loading_a_file_without_a_valid_judge_model_raises_input_error(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "judge.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        JudgeModel.load(file)
    assert str(file) in str(caught.value)
    assert "finetune judge" in str(caught.value)


def test_unreadable_or_unwritable_judge_file_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        JudgeModel.load(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        JudgeModel.load(tmp_path / "bytes.json")
    number: Any = 3
    with pytest.raises(InputError, match="3 is not a path"):
        JudgeModel.load(number)
    with pytest.raises(InputError, match="cannot be written"):
        JudgeModel.shipped().save(tmp_path)
