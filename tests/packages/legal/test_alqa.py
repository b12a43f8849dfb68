from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from casewright.errors import DependencyError, InputError
from casewright_legal.alqa import DATASETS, read_alqa

RECORD: dict[str, Any] = {
    "question": "In Holt v Marsh [2010] ArdSC 1, why was the bond kept?",
    "answer": "For the burnt carpet.",
    "text": "Question: …\nAnswer: …",
    "prompt": "# Snippet …",
    "source": {
        "version_id": "ardmore_caselaw:2010-ardsc-1",
        "type": "decision",
        "jurisdiction": "ardmore",
        "source": "ardmore_caselaw",
        "citation": "Holt v Marsh [2010] ArdSC 1",
        "url": "https://example.org/1",
        "text": "Mr Holt burnt the carpet. By s 33 of the Residential Tenancies Act 2009 he pays.",
    },
}


def write_records(folder: Path, *records: Any) -> Path:
    path = folder / "qa.jsonl"
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def record_with_source(**source: Any) -> dict[str, Any]:
    return {**RECORD, "source": {**RECORD["source"], **source}}


def test_record_becomes_a_case_with_its_source_as_support(tmp_path: Path) -> None:
    (case,) = read_alqa(write_records(tmp_path, RECORD))
    assert case.problem == {
        "question": RECORD["question"],
        "support": RECORD["source"]["text"],
        "entities": ["Holt", "s 33", "Residential Tenancies Act 2009"],
    }
    assert case.solution == "For the burnt carpet."
    assert case.metadata == {
        "key": "Holt v Marsh [2010] ArdSC 1",
        "acts": ["residential tenancies act 2009", "residential tenancies act"],
        "citation": "Holt v Marsh [2010] ArdSC 1",
        "version_id": "ardmore_caselaw:2010-ardsc-1",
        "type": "decision",
        "jurisdiction": "ardmore",
        "source": "ardmore_caselaw",
        "url": "https://example.org/1",
    }


def test_act_that_only_the_citation_names_is_an_act_of_the_case(tmp_path: Path) -> None:
    section = record_with_source(
        citation="Evidence Act 2001 (Ard) s 64", text="Nothing is named here."
    )
    (case,) = read_alqa(write_records(tmp_path, section))
    assert "entities" not in case.problem
    assert case.metadata["acts"] == ["evidence act 2001", "evidence act"]


def test_entities_come_from_the_given_extractor(tmp_path: Path) -> None:
    cases = read_alqa(write_records(tmp_path, RECORD), lambda text: [text[:7], "Evidence Act 2001"])
    assert cases[0].problem["entities"] == ["Mr Holt", "Evidence Act 2001"]
    assert cases[0].metadata["acts"] == ["evidence act 2001", "evidence act"]


def test_empty_lines_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    assert len(read_alqa(write_records(tmp_path, RECORD, "", {**RECORD, "extra": 1}))) == 2


def test_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = write_records(tmp_path, RECORD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_alqa(path)) == 1


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_file_without_a_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"qa\.jsonl has no cases"):
        read_alqa(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "the line is not JSON"),
        ("[" * 100_000, "the line is not JSON"),
        ("[]", "the record"),
        ({**RECORD, "answer": "  "}, "answer"),
        ({**RECORD, "question": 7}, "question"),
        ({**RECORD, "source": "x"}, "source"),
        (record_with_source(text=""), r"source\.text"),
        (record_with_source(citation=None), r"source\.citation"),
    ],
)
def test_invalid_record_is_refused_with_its_file_and_line(
    tmp_path: Path, line: Any, message: str
) -> None:
    path = write_records(tmp_path, RECORD, "", line)
    with pytest.raises(InputError, match=rf"qa\.jsonl, line 3: {message}"):
        read_alqa(path)


def test_unreadable_file_is_refused_with_the_possible_sources(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(InputError, match=r"cannot be read.*qa\.jsonl.*isaacus"):
            read_alqa(path)
    broken = tmp_path / "latin.jsonl"
    broken.write_bytes(b'{"question": "\xe9"}')
    with pytest.raises(InputError, match=r"latin\.jsonl cannot be read"):
        read_alqa(broken)


def test_dataset_name_without_the_package_datasets_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    for name in DATASETS:
        with pytest.raises(DependencyError, match="pip install datasets"):
            read_alqa(name)


def hub(records: Any) -> Any:
    """Return a stand-in for the datasets package, which may not be installed."""

    def load_dataset(name: str, *, split: str) -> Any:
        assert split == "train"
        if isinstance(records, Mapping):
            return records[name]
        raise ConnectionError("no route to the hub")

    return SimpleNamespace(load_dataset=load_dataset)


def test_hugging_face_dataset_is_read_like_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", hub({DATASETS[0]: [RECORD, RECORD]}))
    assert [case.solution for case in read_alqa(DATASETS[0])] == ["For the burnt carpet."] * 2
    bad = hub({DATASETS[0]: [RECORD, record_with_source(text="")]})
    monkeypatch.setitem(sys.modules, "datasets", bad)
    with pytest.raises(InputError, match=rf"{DATASETS[0]}, record 2: source\.text"):
        read_alqa(DATASETS[0])


def test_failure_of_the_hub_is_an_error_that_suggests_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", hub(None))
    with pytest.raises(InputError, match=r"no route to the hub.*qa\.jsonl"):
        read_alqa(DATASETS[0])
