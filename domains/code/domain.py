"""The code domain: a user asks for what a source tree defines, or how it does something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.domains.code.index import CodeIndex
from casewright.domains.code.search import (
    UNNAMED,
    loop_search,
    plain_search,
    symbol_search,
)
from casewright.domains.code.store import last_tree, open_tree, source_tree
from casewright.domains.code.tools import code_toolbox
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.own_answer import Option
from casewright.planner import AnnotatedQuery
from casewright.planner.plan_cases import plan_store
from casewright.stores import CaseStore, Encoder
from casewright.stores.feedback import NeighbourStrategy

if TYPE_CHECKING:
    from casewright.graph import Generator

QUESTIONS = (
    "Show me the full split method of class Splitter",
    "Show me the whole function main",
    "Where is a request tried again when it failed?",
    "Give me the complete class Store with all its methods",
    "How are the command line's options read?",
    "Which function writes the file, and what does it return?",
    "What does Client.send do with a response that redirects?",
    "print the code of parse_args",
    "Where are errors turned into messages for the user?",
    "What is the default timeout, and where is it set?",
    "Compare the add and the update method of class Table",
)


def open_code(folder: Path, encoder: Encoder, source: str | Path) -> OpenDomain:
    """Open a source tree; what changed in it since it was asked about last is encoded first.

    Args:
        folder: The domain's folder; each source tree has a folder of its own in it.
        encoder: Embeds the chunks.
        source: The source tree's folder.

    Raises:
        InputError: The source is no folder, or has no source code that could be read.
        StoreError: The store cannot be opened, read or written to.
        DependencyError: The packages that read source code are not installed.
    """
    code = open_tree(folder, encoder, source_tree(source))
    try:
        plans = plan_store(queries(), encoder)
        index = CodeIndex.of(code)
        search = symbol_search(code, index, plain_search(code, weights=UNNAMED))
        toolbox = code_toolbox(code, search, index)
    except BaseException:
        code.close()
        raise
    stores: dict[str, CaseStore] = {"code": code, "plans": plans}
    return OpenDomain(toolbox, plans, stores)


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with a search that goes on from what is relevant."""
    code = opened.stores["code"]
    strategy = NeighbourStrategy()
    index = CodeIndex.of(code)
    # What fills a result up is chosen here, by the symbols or else by a single search.
    named, otherwise = (make(code, strategy, weights) for weights in (None, UNNAMED))
    search = loop_search(code, index, named, otherwise)
    return replace(opened, toolbox=code_toolbox(code, search, index))


def open_last(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open the source tree that was asked about last; ``anew`` changes nothing: opening a tree
    brings it up to date.

    Raises:
        InputError: There is none.
    """
    return open_code(folder, encoder, last_tree(folder))


def queries() -> list[AnnotatedQuery]:
    """Return the domain's annotated queries: each is answered by one search."""
    plan = "s1 = code_search(query=question)"
    return [
        AnnotatedQuery.read({"id": f"c{number}", "query": query, "plan": plan})
        for number, query in enumerate(QUESTIONS, 1)
    ]


def quoter() -> Generator:
    """Return the generator that quotes code line by line and in full."""
    # The graph is not imported where domains are only listed.
    from casewright.domains.code.quoting import CodeQuoter

    return CodeQuoter()


DOMAIN = Domain(
    name="code",
    description="A user asks about source code: the folder that ask --source names, or the last.",
    questions=QUESTIONS[:3],
    open=open_last,
    queries=queries,
    # Its folder is made for the first source tree.
    mark=".",
    options=(
        Option(
            "source", "The folder of the source code to ask about; the last one by default.", "DIR"
        ),
    ),
    openers={"source": open_code},
    looping=looping,
    generator=quoter,
)
