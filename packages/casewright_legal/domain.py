"""The legal domain: it answers questions from decided cases, and cites them.

The shipped cases were written for this package: they are about courts and statutes of an invented
jurisdiction, Ardmore, in the format of ALQA (Open Australian Legal QA). Environment variables
(see ``data.py``) can replace these cases by ALQA, and choose the form of a case as evidence and the
extractor of entities. If the cases or the extractor change, the stores are rebuilt.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.plan_cases import plan_case
from casewright.stores import Encoder
from casewright.stores.feedback import SentenceStrategy
from casewright_legal import data
from casewright_legal.cases import qa_schema
from casewright_legal.chat_entities import OFFLINE
from casewright_legal.tools import legal_toolbox

#: The modules that convert the data to cases; the stores are rebuilt when one of them changes.
MODULES = (
    *("acts.py", "alqa.py", "cases.py", "entities.py"),
    *("entity_names.py", "entity_tokens.py", "entity_words.py"),
)
#: The additional module for entities that a chat model extracts.
CHAT_MODULE = "chat_entities.py"


def open_legal(folder: Path, encoder: Encoder, rebuild: bool = False) -> OpenDomain:
    """Open the legal stores in a folder; build the stores first if needed.

    Raises:
        InputError: A setting is invalid, or ALQA's file does not exist or has another format.
        DependencyError: A package for Hugging Face or for a chat model is not installed.
        CasewrightError: The chat model that extracts entities does not answer.
    """
    extractor = data.extractor_name()
    schemas = {  # by store, with the function that makes the store's cases
        "legal": (qa_schema(encoder, context=data.context_form()), data.legal_cases),
        "plans": (plan_schema(encoder), lambda: [plan_case(query) for query in queries()]),
    }
    file = data.source_file()
    names = MODULES if extractor == OFFLINE else (*MODULES, CHAT_MODULE)
    modules = (files("casewright_legal") / name for name in names)
    sources = [*modules, data.data_file("queries"), *([file] if file else [])]
    expected_digest = digest(sources, [schema for schema, _ in schemas.values()])
    if file is None:
        expected_digest += f" {data.source()}"
    if extractor != OFFLINE:
        expected_digest += f" {extractor}"
    stores = open_built(folder, "legal", expected_digest, schemas, rebuild=rebuild)
    return OpenDomain(legal_toolbox(stores["legal"]), stores["plans"], stores)


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with searches by relevance feedback."""
    cases = opened.stores["legal"]
    loop = make(cases, SentenceStrategy(), None)  # None: the schema's facet weights
    return replace(opened, toolbox=legal_toolbox(cases, loop))


def queries() -> list[AnnotatedQuery]:
    """Return the shipped annotated queries."""
    return [AnnotatedQuery.read(record) for record in data.records("queries")]


DOMAIN = Domain(
    name="legal",
    description="A lawyer asks what courts held in decided cases, and what statutes say.",
    questions=(
        "Why was the bond not paid to the landlord in Castellan Estates v Rourke?",
        "Can a note on a telephone be a valid will?",
        "Which cases under the Evidence Act 2001 deal with evidence that was obtained unlawfully?",
        "When is a courier an employee and not a contractor?",
    ),
    open=open_legal,
    queries=queries,
    looping=looping,
)
