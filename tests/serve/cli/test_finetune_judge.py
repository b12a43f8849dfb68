"""The command that trains the offline judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewright.stores.feedback import JudgeModel
from tests.finetune.test_judge_training import folder
from tests.serve.helpers import new_home, one_line_error, result, run

#: Training is slow on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("judge") / "home")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("towns"))


def test_finetune_judge_trains_on_given_data_and_beats_its_control(
    home: Path, data: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "judge.json"
    report = result(run(home, "finetune", "judge", "--data", data, "--output", target, "--json"))
    model = JudgeModel.load(target)
    assert report == {
        "file": str(target),
        "thresholds": {"first": model.first.threshold, "later": model.later.threshold},
        **model.training,
    }
    (name,) = report["sets"]
    assert name == data.name
    figures = report["test_figures"][name]["sentences"]
    assert figures["auc"] > figures["auc_control"]
    counts = report["sets"][name]
    assert counts["questions_training"] + counts["questions_test"] == 30
    assert figures["questions"] == counts["questions_test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "."], "is a folder"),
        (["--output", "file/judge.json"], "is a file"),
        (["--output", "judge.json", "--data", "broken"], "line 2"),
        (["--output", "judge.json", "--data", "half"], "1 questions to train with and 0"),
        (["--output", "judge.json", "--data", "half", "--set", "musique"], "musique"),
    ],
    ids=range(5),
)
def test_invalid_options_of_finetune_judge_print_one_line_and_write_nothing(
    home: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (home / "file").write_text("kept", encoding="utf-8")
    for name, cases in (
        ("broken", '{"id": "a", "text": "b"}\n{'),
        ("half", '{"id": "a", "text": "b"}'),
    ):
        (home / name).mkdir(exist_ok=True)
        (home / name / "cases.jsonl").write_text(cases, encoding="utf-8")
        question = '{"id": "q0", "question": "which?", "relevant": ["a"]}'
        (home / name / "questions.jsonl").write_text(question, encoding="utf-8")
    assert message in one_line_error(run(home, "finetune", "judge", *arguments))
    assert not (home / "judge.json").exists()
    assert (home / "file").read_text(encoding="utf-8") == "kept"
