"""Who judges in relevance feedback, by name: the offline judge, or a chat model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.domains import Domain, OpenDomain
    from casewright.stores import CaseStore
    from casewright.stores.feedback import Judge, Strategy
    from casewright.tools import Search

#: No loop, as without a name; and the judge that needs no language model.
OFF, OFFLINE = "off", "offline"


def check_feedback(name: str | None, domain: Domain) -> None:
    """Look whether a domain's searches can go on with this judge, before anything is opened.

    Raises:
        InputError: They cannot, or there is no such judge.
    """
    if name in (None, OFF):
        return
    if domain.looping is None:
        raise InputError(
            f"The domain {domain.name!r} searches once a step. Leave --feedback out; it goes with "
            "--domain code and --domain documents."
        )
    check_judge(name)


def check_judge(name: str | None) -> None:
    """Raise ``InputError`` where there is no such judge."""
    if name not in (None, OFF, OFFLINE) and ":" not in str(name):
        raise InputError(
            f"There is no judge {name!r}. Judges are: {OFFLINE}, or a chat model as "
            f"provider:model, for example openai:gpt-4o-mini; {OFF} searches once."
        )


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


def make_judge(name: str) -> Judge:
    """Return the judge of this name.

    Raises:
        InputError: There is no such chat model.
    """
    if name == OFFLINE:
        from casewright.stores.feedback import OfflineJudge

        return OfflineJudge()
    from casewright.graph.feedback import ChatJudge
    from casewright.planner import chat_model

    return ChatJudge(chat_model(name))
