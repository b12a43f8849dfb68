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


#: Makes a search by relevance feedback with a store, a strategy and facet weights (``None``: the
#: schema's). The search returns only hits that the judge marked as relevant.
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
    """A kind of question, and the functions that open its stores and tools.

    Attributes:
        name: The domain's name on the command line.
        description: One sentence about the domain.
        questions: Examples of questions, the best first.
        open: Opens the domain's stores in a folder. It builds them first if they are missing or
            stale, or if the third argument, ``rebuild``, is true.
        queries: Reads the annotated queries.
        measuring_queries: Reads the test queries, on which no planner is trained or tuned.
        conversations: Reads the annotated conversations, some of which are only for tests.
        scopes: Scope fields with allowed values, the default first. A field without values allows
            any value, and is required.
        reader: The folder of a reader, a small model that is trained on the annotated queries.
        planner: The default planner's name. If this planner cannot run, ``parser`` replaces
            ``ensemble``, and ``case`` replaces any other planner.
        options: The options that the domain adds to ``ask``, besides those of its scope fields.
        openers: Maps an option's name to a function that opens the stores for the option's value.
        mark: The name of a file that exists in the domain's folder once the stores are built.
        looping: Returns the open domain with tools that search by relevance feedback. It is
            ``None`` if feedback brings no gain.
        reads_passages: True if the results are passages of documents. The quoting generator then
            uses the encoder's cross-encoder, which was trained on such passages.
        generator: Returns the generator for answers without a language model, by default
            ``ExtractiveGenerator``.
        tool_pools: A file of alternative names and descriptions of the tools, for training prompts.
        answer: Answers a request that gives an option such as ``image`` instead of a question.
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
        """Return the domain's reader; ``None`` if the domain has no reader."""
        return Reader(self.reader) if self.reader is not None else None
