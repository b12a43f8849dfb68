"""Tests of former names, which work for one release and warn with the new name."""

from __future__ import annotations

import pytest

from casewright.domains import find_domain
from casewright.domains.own_answer import OwnAnswer
from casewright.finetune import demonstrations
from casewright.finetune.evaluation.verdict import Verdict
from casewright.planner.local_chat import LocalChat
from casewright.planner.reader import Reader
from casewright.serve.service import answers
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema


def test_former_name_question_asked_warns_and_returns_query() -> None:
    with CaseStore(note_schema()) as store:
        store.add([note("question", "answer")])
        question = store.question("question")
        assert question is not None
        with pytest.warns(DeprecationWarning, match=r"now Question\.query"):
            assert question.asked is question.query


def test_former_name_reader_asks_warns_and_returns_templates() -> None:
    folder = find_domain("shopping").reader
    assert folder is not None
    reader = Reader(folder)
    with pytest.warns(DeprecationWarning, match=r"now Reader\.templates"):
        assert reader.asks == reader.templates != []


def test_former_name_verdicts_warns_and_returns_answer_measures() -> None:
    with pytest.warns(DeprecationWarning, match="now AnswerMeasures"):
        assert demonstrations.Verdicts is demonstrations.AnswerMeasures


def test_former_name_asked_warns_and_returns_answer_prompt() -> None:
    with pytest.warns(DeprecationWarning, match="now AnswerPrompt"):
        assert demonstrations.Asked is demonstrations.AnswerPrompt


def test_former_name_own_answer_told_warns_and_returns_record() -> None:
    answer = OwnAnswer([], {"right": True}, "", True)
    with pytest.warns(DeprecationWarning, match=r"now OwnAnswer\.record"):
        assert answer.told == {"right": True}


def test_former_name_answers_warns_and_returns_answer_store() -> None:
    with pytest.warns(DeprecationWarning, match="now AnswerStore"):
        assert answers.Answers is answers.AnswerStore


def test_former_names_of_a_verdict_warn_and_return_the_renamed_attributes() -> None:
    verdict = Verdict(
        "a", "b", right_tools=True, right_arguments=False, in_paper=True, milliseconds=1
    )
    with pytest.warns(DeprecationWarning, match=r"now right_tools"):
        assert verdict.tools is True
    with pytest.warns(DeprecationWarning, match=r"now right_arguments"):
        assert verdict.arguments is False
    with pytest.warns(DeprecationWarning, match=r"now in_paper"):
        assert verdict.paper is True


def test_former_name_tokens_of_a_local_chat_sets_max_tokens() -> None:
    assert LocalChat.model_validate({"model": object(), "tokens": 4}).max_tokens == 4
