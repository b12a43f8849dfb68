"""Relevance feedback for a domain's searches, by the judge's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.graph.named import OFF, check_judge, make_judge

if TYPE_CHECKING:
    from casewright.domains import Domain, OpenDomain
    from casewright.stores import CaseStore
    from casewright.stores.feedback import Strategy
    from casewright.tools import Search


def check_feedback(name: str | None, domain: Domain) -> None:
    """Look whether a domain's searches can go on with this judge, before anything is opened.

    Raises:
        InputError: They cannot, or there is no such judge.
    """
    if name in (None, OFF):
        return
    if domain.looping is None:
        raise InputError(
            f"The domain {domain.name!r} compares no texts that a judge could read, or its tools "
            "are your own. Leave --feedback out; for tools of your own, "
            "tool_from_store(…, search=FeedbackSearch(…)) loops."
        )
    check_judge(name)


def with_feedback(opened: OpenDomain, domain: Domain, name: str | None) -> OpenDomain:
    """Return an open domain whose searches go on where that is wanted.

    Raises:
        InputError: There is no such chat model.
    """
    if domain.looping is None or name is None or name == OFF:
        return opened
    judge = make_judge(name)

    def make(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        from casewright.graph.feedback import FeedbackSearch

        return FeedbackSearch(store, judge, strategy, weights=weights, fallback=False)

    return domain.looping(opened, make)
