"""The legal domain: questions answered from decided cases, with their citations.

The cases that ship with the package are written for it: courts and statutes of an invented
jurisdiction, Ardmore, in the form of ALQA (Open Australian Legal QA). Whoever has ALQA sets
``CASEWRIGHT_ALQA`` to the path of its ``qa.jsonl``, or to its name on Hugging Face
(``isaacus/open-australian-legal-qa``); the stores are then built from it.

``CASEWRIGHT_LEGAL_CONTEXT`` is the form of a case as evidence: ``support`` (the default), ``full``
or ``qsa``; see ``context_text``. ``CASEWRIGHT_LEGAL_EXTRACTOR`` names who extracts the cases'
entities: ``offline`` (the default), or a chat model as ``provider:model``, which is asked once a
case when the stores are built. They are built anew when it changes.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, MakeSearch, OpenDomain
from casewright.domains.legal.cases import qa_schema
from casewright.domains.legal.chat_reading import OFFLINE
from casewright.domains.legal.data import data_file, legal_cases, records, source, source_file
from casewright.domains.legal.settings import context_form, extractor_name
from casewright.domains.legal.tools import legal_toolbox
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.plan_cases import plan_case
from casewright.stores import Encoder
from casewright.stores.feedback import SentenceStrategy

#: What makes cases of the data: other cases, where one of these changes.
MAKERS = (
    "acts.py",
    "alqa.py",
    "cases.py",
    "entities.py",
    "entity_names.py",
    "entity_tokens.py",
    "entity_words.py",
)
#: And what does so where a chat model extracts entities.
CHAT_MAKERS = ("chat_entities.py", "chat_reading.py")


def open_legal(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open the legal stores in a folder, building them where needed.

    Raises:
        InputError: ``CASEWRIGHT_ALQA`` names what is not there, or is not in ALQA's form; another
            setting has no such value.
        DependencyError: A setting names a set on Hugging Face or a chat model, and a package for it
            is not installed.
        CasewrightError: The chat model that is to extract entities does not answer.
    """
    extractor = extractor_name()
    parts = {
        "legal": (qa_schema(encoder, context=context_form()), legal_cases),
        "plans": (plan_schema(encoder), lambda: [plan_case(query) for query in queries()]),
    }
    file = source_file()
    names = MAKERS if extractor == OFFLINE else (*MAKERS, *CHAT_MAKERS)
    makers = (files("casewright.domains.legal") / name for name in names)
    made_of = [*makers, data_file("queries"), *([file] if file else [])]
    wanted = digest(made_of, [schema for schema, _ in parts.values()])
    if file is None:
        wanted += f" {source()}"
    if extractor != OFFLINE:
        wanted += f" {extractor}"
    stores = open_built(folder, "legal", wanted, parts, anew=anew)
    return OpenDomain(legal_toolbox(stores["legal"]), stores["plans"], stores)


def looping(opened: OpenDomain, make: MakeSearch) -> OpenDomain:
    """Return the open domain with searches that go on from what is relevant."""
    cases = opened.stores["legal"]
    return replace(opened, toolbox=legal_toolbox(cases, make(cases, SentenceStrategy(), None)))


def queries() -> list[AnnotatedQuery]:
    """Read the annotated queries that ship with the domain."""
    return [AnnotatedQuery.read(record) for record in records("queries")]


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
