"""The code domain's searches with relevance feedback: nothing is lost by it, and no noise added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.code.domain import open_code
from casewright.graph.feedback import FeedbackSearch
from casewright.graph.named import OFFLINE
from casewright.serve.session.session import with_feedback
from casewright.stores import CaseStore, default_encoder
from casewright.stores.feedback import Candidate, JudgeRequest, Strategy, Verdicts
from casewright.tools import CallContext, Search
from tests.domains.code.trees import source_tree
from tests.domains.helpers import call

DOMAIN = find_domain("code")
SPLIT = "Show me the full split method of class Splitter"
WHOLE = "Give me the complete class Store"
RETRY = "Where is a request sent again after it failed?"


@dataclass(frozen=True)
class Marks:
    """A judge that confirms what has one of these symbols, or fails."""

    symbols: tuple[str, ...] = ()
    fails: bool = False
    name: str = "marks"

    def judge(self, request: JudgeRequest) -> Verdicts:
        if self.fails:
            raise ValueError("no judge today")
        return Verdicts(frozenset(one.id for one in request.candidates if self._marked(one)))

    def _marked(self, one: Candidate) -> bool:
        return one.hit.case.metadata.get("symbol") in self.symbols


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    tree = source_tree(tmp_path_factory.mktemp("trees") / "demo")
    domain = open_code(tmp_path_factory.mktemp("code"), default_encoder(), tree)
    yield domain
    domain.close()


def looped(opened: OpenDomain, judge: Marks) -> OpenDomain:
    def make(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        return FeedbackSearch(store, judge, strategy, weights=weights, fallback=False)

    assert DOMAIN.looping is not None
    return DOMAIN.looping(opened, make)


def places(opened: OpenDomain, question: str) -> list[str]:
    return [row["source"] for row in call(opened, "code_search", question)]


NOTHING = {"a judge that confirms nothing": Marks(), "a judge that fails": Marks(fails=True)}


@pytest.mark.parametrize("question", [SPLIT, WHOLE, RETRY])
@pytest.mark.parametrize("judge", NOTHING)
def test_feedback_without_confirmed_hits_finds_the_same_as_a_single_search(
    opened: OpenDomain, judge: str, question: str
) -> None:
    found = places(opened, question)
    assert found
    assert places(looped(opened, NOTHING[judge]), question) == found


@pytest.mark.parametrize("question", [SPLIT, WHOLE])
def test_feedback_adds_confirmed_chunks_after_the_named_symbols(
    opened: OpenDomain, question: str
) -> None:
    found = places(opened, question)
    more = places(looped(opened, Marks(("Lines.split", "Splitter.split"))), question)
    assert more[: len(found)] == found
    assert len(set(more)) == len(more)
    assert {place.rpartition(" ")[2] for place in more[len(found) :]} <= {
        "(Lines.split)",
        "(Splitter.split)",
    }
    assert any(place.endswith("(Lines.split)") for place in more)


def test_feedback_puts_confirmed_chunks_first_if_no_symbol_is_named(
    opened: OpenDomain,
) -> None:
    found = places(opened, RETRY)
    assert not any(place.endswith("(Store.add)") for place in found)
    more = places(looped(opened, Marks(("Store.add",))), RETRY)
    confirmed = [place for place in more if place.endswith("(Store.add)")]
    assert len(confirmed) > 1
    assert more == [*confirmed, *found]


@pytest.mark.parametrize("question", [SPLIT, RETRY])
def test_feedback_rounds_of_code_search_are_reported_as_events(
    opened: OpenDomain, question: str
) -> None:
    events: list[Mapping[str, Any]] = []
    spec = looped(opened, Marks(("Store.add", "Splitter.split"))).toolbox["code_search"]
    assert spec.run is not None
    spec.run({"query": question}, CallContext(question=question, report=events.append))
    *rounds, ended = events
    assert [one["round"] for one in rounds] == list(range(1, len(rounds) + 1))
    assert len(rounds) > 1
    assert ended["event"] == "feedback_ended"


def test_offline_judge_keeps_all_chunks_of_the_named_symbol(opened: OpenDomain) -> None:
    found = places(opened, SPLIT)
    assert places(with_feedback(opened, DOMAIN, OFFLINE), SPLIT)[: len(found)] == found


def test_feedback_setup_reads_the_code_store_once(
    opened: OpenDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[CaseStore] = []
    read: Callable[..., Any] = CaseStore.all

    def counted(store: CaseStore, *given: Any, **named: Any) -> Any:
        reads.append(store)
        return read(store, *given, **named)

    monkeypatch.setattr(CaseStore, "all", counted)
    # Bound to no store but the tree's: another would be read beside it.
    looped(replace(opened, stores={"code": opened.stores["code"]}), Marks())
    assert reads == [opened.stores["code"]]
