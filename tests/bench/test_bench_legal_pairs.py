from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from casewright.bench.legal.data import SHIPPED, find_sets
from casewright.bench.legal.pair_writing import check_pairs_output, write_pairs
from casewright.domains.legal.data import data_file
from casewright.errors import CasewrightError, InputError
from tests.serve.helpers import one_line_error, run
from tests.support.multihop import write_lines

MODEL = ("--model", "ollama:mistral")


def answering(*replies: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter(AIMessage(reply) for reply in replies))


def replies(count: int) -> list[str]:
    return [f"Question: Who paid {n}?\nAnswer: Holt and Wren." for n in range(count)]


def record(number: int, support: str) -> dict[str, object]:
    source = {"text": support, "citation": f"Holt v Marsh [2010] ArdSC {number}"}
    return {"question": f"What of {number}?", "answer": "So.", "source": source}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Eight cases; two and two name one town."""
    texts = [f"Mr Holt lived in {town}." for town in ("Ilk", "Ott", "Ryde", "Tarn") * 2]
    records = [record(n, text.replace("Holt", f"Holt{n}")) for n, text in enumerate(texts)]
    return write_lines(tmp_path / "qa.jsonl", records)


def test_bench_reads_the_questions_that_were_written(cases: Path) -> None:
    output = cases.with_name("pairs.jsonl")
    answers = ["I cannot.", *replies(3)]
    counts = write_pairs(str(cases), output, answering(*answers), progress=False)
    assert (counts.cases, counts.pairs, counts.questions) == (8, 4, 3)
    assert counts.skipped == {"the model's answer has another form": 1}
    with pytest.raises(InputError, match="has 3 questions"):
        find_sets(cases.parent)
    write_pairs(str(cases), output, answering(*replies(4)), progress=False)
    (data_set,) = find_sets(cases.parent)
    assert (data_set.name, data_set.left_out) == ("alqa", 0)
    assert {question.parents for question in data_set.questions} == {(0, 4), (1, 5), (2, 6), (3, 7)}
    assert {question.reference for question in data_set.questions} == {"Holt and Wren."}


def test_shipped_cases_are_paired_as_often_as_asked_and_alike_by_the_seed(tmp_path: Path) -> None:
    parents = []
    for seed in (0, 0, 1):
        output = tmp_path / "pairs.jsonl"
        model = answering(*replies(6))
        assert (
            write_pairs(SHIPPED, output, model, pairs=6, seed=seed, progress=False).questions == 6
        )
        lines = output.read_text(encoding="utf-8").splitlines()
        parents.append([json.loads(line)["parents"] for line in lines])
    assert parents[0] == parents[1] != parents[2]


def test_case_that_others_are_cited_like_is_in_no_pair(cases: Path) -> None:
    with cases.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record(0, "Mr Wren lived in Ilk.")) + "\n")
    output = cases.with_name("pairs.jsonl")
    counts = write_pairs(str(cases), output, answering(*replies(3)), progress=False)
    assert (counts.cases, counts.cases_left_out_as_others_are_cited_alike, counts.questions) == (
        9,
        2,
        3,
    )
    lines = output.read_text(encoding="utf-8").splitlines()
    parents = {parent for line in lines for parent in json.loads(line)["parents"]}
    assert len(parents) == 6
    assert "Holt v Marsh [2010] ArdSC 0" not in parents


def test_pairs_share_what_the_chat_model_extracted(cases: Path) -> None:
    # Case 0 and 1 name the same, to this model; of the others it says nothing that is there.
    named = ['["lived"]', '["lived"]', *["none of it"] * 6]
    output = cases.with_name("pairs.jsonl")
    write_pairs(
        str(cases), output, answering(*replies(9)), extractor=answering(*named), progress=False
    )
    data_set = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    (pair,) = [record_of for record_of in data_set if record_of["shared"] == ["lived"]]
    assert sorted(pair["parents"]) == [f"Holt v Marsh [2010] ArdSC {n}" for n in (0, 1)]


def test_replaced_extractions_are_counted_on_stderr(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ['["lived"]', '["lived"]', *["none of it"] * 6]
    output = cases.with_name("pairs.jsonl")
    write_pairs(
        str(cases), output, answering(*replies(9)), extractor=answering(*named), progress=False
    )
    assert "6 of 8 texts were read by the offline extractor" in capsys.readouterr().err


def test_progress_is_shown_on_stderr(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pairs(str(cases), cases.with_name("pairs.jsonl"), answering(*replies(4)))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "4/4" in shown.err


def test_file_that_was_there_stays_where_no_question_was_usable(cases: Path) -> None:
    output = cases.with_name("pairs.jsonl")
    output.write_text("old\n", encoding="utf-8")
    with pytest.raises(
        CasewrightError, match=r"no usable question for 4 pairs.*another form \(4\)"
    ):
        write_pairs(str(cases), output, answering(*["No."] * 4), progress=False)
    assert output.read_text(encoding="utf-8") == "old\n"


def test_cases_that_share_nothing_are_refused(tmp_path: Path) -> None:
    texts = ("Mr Holt fell.", "Ms Wren fell.")
    path = write_lines(tmp_path / "qa.jsonl", [record(n, text) for n, text in enumerate(texts)])
    with pytest.raises(InputError, match="no two of its 2 cases share"):
        write_pairs(str(path), tmp_path / "pairs.jsonl", answering(), progress=False)


def test_data_are_never_written_over(cases: Path) -> None:
    before = cases.read_bytes()
    link = cases.with_name("link.jsonl")
    link.symlink_to(cases)
    for output in (cases, link):
        with pytest.raises(InputError, match="is read by this command"):
            write_pairs(str(cases), output, answering(*replies(4)), progress=False)
    assert cases.read_bytes() == before
    for name in ("cases", "pairs"):
        with pytest.raises(InputError, match="is read by this command"):
            check_pairs_output(Path(str(data_file(name))), SHIPPED)


def test_output_is_looked_at_before_the_model_is_asked_and_nothing_is_left_there(
    cases: Path,
) -> None:
    for output in (cases.parent, cases.parent / "none" / "pairs.jsonl", cases / "pairs.jsonl"):
        with pytest.raises(InputError, match="cannot be written"):
            # A model without replies would fail otherwise.
            write_pairs(str(cases), output, answering(), progress=False)
    check_pairs_output(cases.with_name("pairs.jsonl"), str(cases))
    assert [file.name for file in cases.parent.iterdir()] == ["qa.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "pairs.jsonl"), "--model provider:model"),
        (("--output", "pairs.jsonl", "--model", "mistral"), "names no chat model"),
        (("--output", "pairs.jsonl", *MODEL, "--extractor", "x"), "--extractor is 'x'"),
        (("--output", "none/pairs.jsonl", *MODEL), "none/pairs.jsonl cannot be written"),
        (("--output", "qa.jsonl", "--data", "qa.jsonl", *MODEL), "is read by this command"),
    ],
)
def test_error_of_the_user_is_one_line(
    cases: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = cases.read_bytes()
    assert message in one_line_error(run(cases.parent, "bench", "legal-pairs", *arguments))
    assert cases.read_bytes() == before
    assert not cases.with_name("pairs.jsonl").exists()


def test_set_that_is_not_there_is_told_with_the_names_of_all(tmp_path: Path) -> None:
    message = one_line_error(run(tmp_path, "bench", "legal", "--set", "nope"))
    assert "There are: shipped" in message
    assert "hotpotqa, 2wikimultihop, musique, alqa, shipped" in message
