"""Domains with one tool and one store of cases; ``casewright ask`` can also give them an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, OpenDomain
from casewright.domains.own_answer import Option, OwnAnswer, OwnRequest
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.plan_cases import plan_case
from casewright.stores import Case, CaseSchema, CaseStore, Encoder
from casewright.tools import Toolbox, ToolExample, tool_from_function

if TYPE_CHECKING:
    from casewright.graph import Generator


def _full_quotation() -> Generator:
    """Return a generator that quotes the evidence in full."""
    # The import is here, so that a list of the domains does not import the graph package.
    from casewright.graph import ExtractiveGenerator

    return ExtractiveGenerator(full=True)


def one_tool_domain(
    name: str,
    description: str,
    questions: Sequence[str],
    *,
    tool: str,
    tool_description: str,
    schema: Callable[[], CaseSchema],
    cases: Callable[[], Sequence[Case]],
    sources: Callable[[], Iterable[Traversable]],
    evidence: Callable[[CaseStore, str], Iterable[str]],
    options: Sequence[Option],
    answer: Callable[[OpenDomain, OwnRequest], OwnAnswer],
) -> Domain:
    """Return a domain in which the plan of every question is one call of the domain's tool.

    Args:
        name: The name of the domain and of its case store.
        description: One sentence about the domain.
        questions: Questions that the tool answers; the first two are shown as examples.
        tool: The name of the tool.
        tool_description: The tool's description for planners.
        schema: Returns the schema of the case store.
        cases: Returns the cases of the store.
        sources: Returns the files on which the cases depend; the store is rebuilt if one changes.
        evidence: Returns the lines that answer a question, the most important first.
        options: Options that the domain adds to ``casewright ask``.
        answer: Returns the answer to a request that uses the added options.
    """
    plan = f"s1 = {tool}(query=question)"

    def queries() -> list[AnnotatedQuery]:
        records = (
            {"id": f"{name}-{number}", "query": question, "plan": plan, "class": tool}
            for number, question in enumerate(questions)
        )
        return list(map(AnnotatedQuery.read, records))

    def toolbox(store: CaseStore) -> Toolbox:
        def run(query: str) -> list[dict[str, Any]]:
            return [{"evidence": line} for line in evidence(store, query)]

        spec = tool_from_function(
            run,
            name=tool,
            description=tool_description,
            results=("evidence",),
            example=ToolExample(questions[0], plan),
        )
        return Toolbox([spec])

    def open_stores(folder: Path, encoder: Encoder, rebuild: bool = False) -> OpenDomain:
        contents_by_store = {  # each store's schema, and a function that returns its cases
            name: (schema(), cases),
            "plans": (plan_schema(encoder), lambda: [plan_case(query) for query in queries()]),
        }
        store_schemas = [store_schema for store_schema, _ in contents_by_store.values()]
        expected_digest = digest(sources(), store_schemas)
        stores = open_built(folder, name, expected_digest, contents_by_store, rebuild=rebuild)
        return OpenDomain(toolbox(stores[name]), stores["plans"], stores)

    return Domain(
        name=name,
        description=description,
        questions=questions[:2],
        open=open_stores,
        queries=queries,
        options=options,
        answer=answer,
        generator=_full_quotation,
    )
