"""Tests of the code domain's searches with relevance feedback."""

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
    """A judge that confirms candidates with one of these symbols, or fails."""

    symbols: tuple[str, ...] = ()
    fails: bool = False
    name: str = "marks"

    def judge(self, request: JudgeRequest) -> Verdicts:
        if self.fails:
            raise ValueError("no judge today")
        return Verdicts(frozenset(item.id for item in request.candidates if self._marked(item)))

    def _marked(self, candidate: Candidate) -> bool:
        return candidate.hit.case.metadata.get("symbol") in self.symbols


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    tree = source_tree(tmp_path_factory.mktemp("trees") / "demo")
    domain = open_code(tmp_path_factory.mktemp("code"), default_encoder(), tree)
    yield domain
    domain.close()


def with_loop(opened: OpenDomain, judge: Marks) -> OpenDomain:
    def search(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        return FeedbackSearch(store, judge, strategy, weights=weights, fallback=False)

    assert DOMAIN.looping is not None
    return DOMAIN.looping(opened, search)


def sources_of(opened: OpenDomain, question: str) -> list[str]:
    return [row["source"] for row in call(opened, "code_search", question)]


NOTHING = {"a judge that confirms nothing": Marks(), "a judge that fails": Marks(fails=True)}


@pytest.mark.parametrize("question", [SPLIT, WHOLE, RETRY])
@pytest.mark.parametrize("judge", NOTHING)
def test_feedback_without_confirmed_hits_finds_the_same_as_a_single_search(
    opened: OpenDomain, judge: str, question: str
) -> None:
    single = sources_of(opened, question)
    assert single
    assert sources_of(with_loop(opened, NOTHING[judge]), question) == single


@pytest.mark.parametrize("question", [SPLIT, WHOLE])
def test_feedback_adds_confirmed_chunks_after_the_named_symbols(
    opened: OpenDomain, question: str
) -> None:
    single = sources_of(opened, question)
    sources = sources_of(with_loop(opened, Marks(("Lines.split", "Splitter.split"))), question)
    assert sources[: len(single)] == single
    assert len(set(sources)) == len(sources)
    assert {source.rpartition(" ")[2] for source in sources[len(single) :]} <= {
        "(Lines.split)",
        "(Splitter.split)",
    }
    assert any(source.endswith("(Lines.split)") for source in sources)


def test_feedback_puts_confirmed_chunks_first_if_no_symbol_is_named(
    opened: OpenDomain,
) -> None:
    single = sources_of(opened, RETRY)
    assert not any(source.endswith("(Store.add)") for source in single)
    sources = sources_of(with_loop(opened, Marks(("Store.add",))), RETRY)
    confirmed = [source for source in sources if source.endswith("(Store.add)")]
    assert len(confirmed) > 1
    assert sources == [*confirmed, *single]


@pytest.mark.parametrize("question", [SPLIT, RETRY])
def test_feedback_rounds_of_code_search_are_reported_as_events(
    opened: OpenDomain, question: str
) -> None:
    events: list[Mapping[str, Any]] = []
    spec = with_loop(opened, Marks(("Store.add", "Splitter.split"))).toolbox["code_search"]
    assert spec.run is not None
    spec.run({"query": question}, CallContext(question=question, report=events.append))
    *rounds, end_event = events
    assert [event["round"] for event in rounds] == list(range(1, len(rounds) + 1))
    assert len(rounds) > 1
    assert end_event["event"] == "feedback_ended"


def test_offline_judge_keeps_all_chunks_of_the_named_symbol(opened: OpenDomain) -> None:
    single = sources_of(opened, SPLIT)
    assert sources_of(with_feedback(opened, DOMAIN, OFFLINE), SPLIT)[: len(single)] == single


def test_feedback_setup_reads_the_code_store_once(
    opened: OpenDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[CaseStore] = []
    read: Callable[..., Any] = CaseStore.all

    def record_read(store: CaseStore, *args: Any, **kwargs: Any) -> Any:
        reads.append(store)
        return read(store, *args, **kwargs)

    monkeypatch.setattr(CaseStore, "all", record_read)
    # Without other stores, whose reads would count as well.
    with_loop(replace(opened, stores={"code": opened.stores["code"]}), Marks())
    assert reads == [opened.stores["code"]]
