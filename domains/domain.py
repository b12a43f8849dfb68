"""A domain: stores, tools and plan cases for one kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.domains.own_answer import Option, OwnAnswer, OwnRequest
from casewright.planner import AnnotatedQuery, Reader
from casewright.planner.annotated import Conversation
from casewright.stores import CaseStore, Encoder
from casewright.stores.feedback import Strategy
from casewright.tools import Search, Toolbox

if TYPE_CHECKING:
    from casewright.graph import Generator


#: A function that returns a search of a store by relevance feedback, which returns only confirmed
#: hits. Without facet weights, those of the store's schema are used.
MakeSearch = Callable[[CaseStore, Strategy, Mapping[str, float] | None], Search]


@dataclass(frozen=True, slots=True)
class OpenDomain:
    """An open domain: its tools, its plan cases, and all its stores by name."""

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
        name: Its name on the command line.
        description: One sentence.
        questions: Examples of questions, the best first.
        open: Opens its stores in a folder; builds them first if they are missing or stale, or if
            the third argument, ``rebuild``, is true.
        queries: Reads its annotated queries.
        measuring_queries: Reads test queries, on which no planner is trained or tuned.
        conversations: Reads its annotated conversations, some of which are for tests only.
        scopes: Scope field to the allowed values, the default first; a field without values allows
            any, and is required.
        reader: Folder of a reader that is trained on its annotated queries.
        planner: The default planner's name; if it cannot run, ``parser`` replaces the ensemble,
            and ``case`` another planner.
        options: Options that it adds to ``ask``, in addition to the options of its scope fields.
        openers: Option name to the function that opens its stores by the option's value.
        mark: The name of a file in its folder that exists if its stores are built.
        looping: Returns the open domain with tools that search by relevance feedback; ``None`` if
            a single search is as good.
        reads_passages: True if the results are passages of documents: the quoting generator then
            uses the encoder's cross-encoder, which was trained on such passages.
        generator: Returns the generator that quotes evidence, which is used without a language
            model.
        tool_pools: File with alternative names and descriptions of its tools, for training prompts.
        answer: Answers a request without a question, whose option is not in ``openers``.
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
    reads_passages: bool = False
    generator: Callable[[], Generator] | None = None
    tool_pools: Path | None = None
    answer: Callable[[OpenDomain, OwnRequest], OwnAnswer] | None = None

    def open_reader(self) -> Reader | None:
        """Return its reader, if it has one."""
        return Reader(self.reader) if self.reader is not None else None
