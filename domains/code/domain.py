"""The code domain: questions about the code and the definitions in a source tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.domains.code.search import UNNAMED_WEIGHTS, CodeSearch, loop_search, symbol_search
from casewright.domains.code.store import last_tree, open_tree, source_tree
from casewright.domains.code.symbol_index import CodeIndex
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.own_answer import Option
from casewright.domains.search_tools import search_queries, search_toolbox
from casewright.planner import plan_store
from casewright.stores import Case, Encoder, Hit
from casewright.stores.documents.cases import location_text
from casewright.stores.feedback import NeighbourStrategy
from casewright.tools import CallContext, Toolbox

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
#: Returns the domain's annotated queries.
queries = partial(search_queries, "c", "code_search", QUESTIONS)


def open_code(folder: Path, encoder: Encoder, source: str | Path) -> OpenDomain:
    """Return the open domain for a source tree, after updating the tree's store in the folder.

    Raises:
        InputError: The source is not a folder, or has no readable source code.
        StoreError: The store cannot be opened, read or written to.
        DependencyError: The packages that read source code are not installed.
    """
    code = open_tree(folder, encoder, source_tree(source))
    try:
        plans = plan_store(queries(), encoder)
        index = CodeIndex.of(code)
        toolbox = code_toolbox(symbol_search(code, index), index)
    except BaseException:
        code.close()
        raise
    return OpenDomain(toolbox, plans, {"code": code, "plans": plans})


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with a tool that searches by relevance feedback."""
    code = opened.stores["code"]
    index = CodeIndex.of(code)
    name_loop = make(code, NeighbourStrategy(), None)  # with the schema's weights
    text_loop = make(code, NeighbourStrategy(), UNNAMED_WEIGHTS)
    search = loop_search(code, index, name_loop, text_loop)
    return replace(opened, toolbox=code_toolbox(search, index))


def code_toolbox(search: CodeSearch, index: CodeIndex) -> Toolbox:
    """Return the toolbox of a source tree; its tool calls ``search``."""

    def code_search(query: str, call: CallContext) -> Sequence[dict[str, Any]]:
        """Finds functions, methods and classes of a source tree, each with all that was found."""
        return [
            {"evidence": str(case.solution), "source": location_text(case, index.roots)}
            for case in _grouped_by_definition(search(query, call))
        ]

    return search_toolbox(code_search, "show me the full read method of class Reader")


def _grouped_by_definition(hits: Sequence[Hit]) -> list[Case]:
    """Return the cases of each definition in file order, and the best definition first."""
    definitions: dict[tuple[str, ...], list[Case]] = {}
    for hit in hits:
        metadata = hit.case.metadata
        root, file, symbol = (str(metadata.get(f, "")) for f in ("root", "source", "symbol"))
        key = (root, file, symbol) if symbol else (hit.case.id,)  # else on its own
        definitions.setdefault(key, []).append(hit.case)
    return [
        case
        for cases in definitions.values()
        for case in sorted(cases, key=lambda case: case.metadata.get("position", 0))
    ]


def quoter() -> Generator:
    """Return the generator that quotes code in full."""
    # The import is here, so that a list of the domains does not import the graph package.
    from casewright.domains.code.quoting import CodeQuoter

    return CodeQuoter()


DOMAIN = Domain(
    name="code",
    description="A user asks about the code in the folder that ask --source names, or named last.",
    questions=QUESTIONS[:3],
    open=lambda folder, encoder, rebuild: open_code(folder, encoder, last_tree(folder)),
    queries=queries,
    # The mark is the domain's folder, which is created for the first source tree.
    mark=".",
    options=[Option("source", "The folder of source code; by default the last one given.", "DIR")],
    openers={"source": open_code},
    looping=looping,
    generator=quoter,
)
