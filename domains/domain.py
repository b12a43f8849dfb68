"""What a domain is: stores, tools and plan cases for one kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from casewright.domains.own_answer import Option, OwnAnswer, OwnRequest
from casewright.planner import AnnotatedQuery, Reader
from casewright.planner.conversations import Conversation
from casewright.stores import CaseStore, Encoder
from casewright.stores.feedback import Strategy
from casewright.tools import Search, Toolbox

if TYPE_CHECKING:
    from casewright.graph import Generator


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
        planner: Who plans where nobody says; ``case`` where that cannot run here.
        options: Options that it adds to ``ask``; those of its scope fields are added to them.
        openers: By an option's name, what opens its stores by that option's value, in a folder.
        mark: The file that its folder has once its stores are built.
        looping: Returns the open domain with a toolbox whose steps search by relevance feedback;
            ``None`` where a single search does as well.
        generator: Makes what quotes its evidence where no language model words the answer.
        answer: Answers what its options, but for those of ``openers``, ask without a question;
            ``None`` where each question is in words.
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
    planner: str = "case"
    options: Sequence[Option] = ()
    openers: Mapping[str, Callable[[Path, Encoder, str], OpenDomain]] = field(default_factory=dict)
    mark: str = "built.json"
    looping: Callable[[OpenDomain, MakeSearch], OpenDomain] | None = None
    generator: Callable[[], Generator] | None = None
    tool_pools: Path | None = None
    answer: Callable[[OpenDomain, OwnRequest], OwnAnswer] | None = None

    def open_reader(self) -> Reader | None:
        """Return its reader, if it has one."""
        return Reader(self.reader) if self.reader is not None else None
