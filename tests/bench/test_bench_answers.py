"""Tests of `casewright bench answers`: supported sentences, found facts and kept answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.bench import answers as measure
from casewright.bench.answers import measure_answers
from casewright.errors import CasewrightError, InputError
from casewright.graph import ChatGenerator
from casewright.stores import default_encoder
from tests.graph.helpers import ScriptedModel

PAGES = {
    "The mill": "The mill was built by Ann Bell in 1790. It grinds rye.",
    "Ann Bell": "Ann Bell was born in Leeds. She was an engineer.",
    **{f"Ship {number}": f"Ship {number} sails to Oslo with timber." for number in range(4)},
}
ITEM = {
    "_id": "1",
    "question": "Where was the builder of the mill born?",
    "answer": "Leeds",
    "supporting_facts": [["The mill", 0], ["Ann Bell", 0]],
    "context": [[title, [text]] for title, text in PAGES.items()],
}
YES = {**ITEM, "_id": "2", "question": "Is it so?", "answer": "yes"}
ANSWER_TEXT = "Ann Bell was born in Leeds. Dogs like bones."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = "\n".join(map(json.dumps, (YES, ITEM)))
    (tmp_path / "hotpotqa-dev.jsonl").write_text(lines)
    return tmp_path


def measure_fake_model(
    data: Path, monkeypatch: pytest.MonkeyPatch, script: Any = ANSWER_TEXT, **options: Any
) -> Any:
    def fake_generator(name: str, encoder: Any) -> ChatGenerator:
        assert name == "fake:model"
        return ChatGenerator(ScriptedModel(script=script))

    monkeypatch.setattr(measure, "find_generator", fake_generator)
    return measure_answers(data, default_encoder(), ["fake:model"], 5, **options)


def raise_no_model(messages: Any) -> str:
    raise RuntimeError("no model")


def test_bench_counts_failed_answers_of_the_model_as_quoted(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_item = {**ITEM, "_id": "3", "question": "Where was Ann Bell born?"}
    (data / "hotpotqa-dev.jsonl").write_text("\n".join(map(json.dumps, (ITEM, second_item))))

    def answer_or_raise(messages: Any) -> str:
        return raise_no_model(messages) if "builder" in str(messages) else ANSWER_TEXT

    (row,) = measure_fake_model(data, monkeypatch, answer_or_raise).rows
    assert (row["answers"], row["quoted"]) == (2, 1)


def test_bench_reports_sentences_supported_by_words_and_meaning_and_found_facts(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = measure_fake_model(data, monkeypatch)
    (row,) = report.rows
    assert (row["answers"], row["sentences"], row["cited"]) == (1, 2, 0)
    assert (row["by_words"], row["by_meaning"], row["facts"]) == (0.5, 0.5, 1.0)
    assert row["letters"] == len(ANSWER_TEXT)


def test_bench_reads_kept_answers_without_the_model_and_compares_their_labels(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_file = data / "kept.jsonl"
    measure_fake_model(data, monkeypatch, keep=kept_file)
    line = json.loads(kept_file.read_text())
    kept_file.write_text(json.dumps({**line, "supported": [True, True]}))
    _, kept_row = measure_fake_model(data, monkeypatch, raise_no_model, keep=kept_file).rows
    assert (kept_row["sentences"], kept_row["supported"]) == (2, 1.0)
    assert (kept_row["by_words_of_supported"], kept_row["by_meaning_of_supported"]) == (0.5, 0.5)


def test_bench_fails_when_the_model_answers_no_question(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CasewrightError, match=r"No question was answered: .*no model"):
        measure_fake_model(data, monkeypatch, raise_no_model)


def test_bench_measures_the_support_check_on_labelled_claims(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data / "scifact"
    folder.mkdir()
    abstract = {"doc_id": 7, "title": "Rye", "abstract": ["Rye grows in poor soil.", "It is tall."]}
    (folder / "corpus.jsonl").write_text(json.dumps(abstract))
    evidence = [{"doc_id": 7, "label": "SUPPORT", "sentences": [0]}]
    claims = [
        {"id": 1, "claim": "Rye grows in soil that is poor.", "evidence": evidence},
        {"id": 2, "claim": "Wheat feeds many nations.", "evidence": []},
    ]
    lines = [json.dumps({**claim, "cited_doc_ids": [7]}) for claim in claims]
    (folder / "claims_train.jsonl").write_text("\n".join(lines))
    *_, row = measure_fake_model(data, monkeypatch, claims=folder).rows
    assert (row["pairs"], row["support_kept"], row["none_kept"]) == (2, 1.0, 0.0)


def test_folder_without_questions_is_an_error_that_names_the_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has none of hotpotqa-dev"):
        measure_answers(tmp_path, default_encoder(), ["extractive"], 5)
