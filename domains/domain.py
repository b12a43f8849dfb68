"""What a domain is: stores, tools and plan cases for one kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from casewright.domains.image_answer import ImageAnswer
from casewright.planner import AnnotatedQuery
from casewright.planner.conversations import Conversation
from casewright.stores import CaseStore, Encoder
from casewright.stores.feedback import Strategy
from casewright.tools import Search, Toolbox


class MakeSearch(Protocol):
    """Makes a search of a store by relevance feedback, which returns what was confirmed alone."""

    def __call__(
        self, store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None
    ) -> Search:
        """Return the search.

        Args:
            store: What is searched.
            strategy: How later rounds search.
            weights: Facet name to weight, where they are not the schema's own.
        """


@dataclass(frozen=True, slots=True)
class OpenDomain:
    """A domain whose stores are open.

    Attributes:
        toolbox: The domain's tools, bound to its stores.
        plan_cases: Its annotated queries as plan cases.
        stores: All its stores by name, to count and to close.
    """

    toolbox: Toolbox
    plan_cases: CaseStore
    stores: Mapping[str, CaseStore]

    def close(self) -> None:
        """Close every store."""
        for store in self.stores.values():
            store.close()


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain that can be opened.

    Attributes:
        name: How it is called on the command line.
        description: One sentence.
        questions: Questions to try, the best first.
        open: Opens its stores in a folder, building them first where they are missing or stale, or
            in any case where its third argument, ``anew``, is true.
        queries: Reads its annotated queries.
        measuring_queries: Reads those that no planner may learn from, nor be tuned on.
        conversations: Reads its annotated conversations; of those that are for measuring no planner
            may learn.
        scopes: Scope field to the values that a request may have, the default first; without any
            it may have any, and has to give one.
        reader: Folder of a reader that was trained on its annotated queries; ``None`` where there
            is none.
        open_at: Opens its stores where a user has them, in a folder or on a server by its URL;
            ``None`` where the domain's cases are its own.
        mark: The file that its folder has once its stores are built.
        open_source: Opens it for a source tree, by the tree's folder; ``None`` where it is about
            none.
        looping: Returns the open domain with a toolbox whose steps search by relevance feedback;
            ``None`` where a single search does as well.
        quotes_code: Its evidence is code, quoted line by line and in full.
        answer_image: Answers about an image: given the open domain, its file, a chat model if
            one is to answer, its name, details, and whether what is proved is retained; ``None``
            where the domain reads none.
        image_details: Names of what can be told of an image beside it.
        tool_pools: File of other names and descriptions for its tools, that training prompts draw
            from; ``None`` where there is none.
    """

    name: str
    description: str
    questions: Sequence[str]
    open: Callable[[Path, Encoder, bool], OpenDomain]
    queries: Callable[[], list[AnnotatedQuery]]
    measuring_queries: Callable[[], list[AnnotatedQuery]] = list
    conversations: Callable[[], list[Conversation]] = list
    scopes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reader: Path | None = None
    open_at: Callable[[str, Encoder], OpenDomain] | None = None
    mark: str = "built.json"
    open_source: Callable[[Path, Encoder, str], OpenDomain] | None = None
    looping: Callable[[OpenDomain, MakeSearch], OpenDomain] | None = None
    quotes_code: bool = False
    tool_pools: Path | None = None
    answer_image: Callable[..., ImageAnswer] | None = None
    image_details: Sequence[str] = ()
