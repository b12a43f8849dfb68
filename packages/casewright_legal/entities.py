"""Extracts entities without a model; ``ChatEntityExtractor`` extracts them with a model.

In CBR-RAG, a language model extracts the entities of a support. Here, patterns find Acts, cases,
citations, sections, courts, judges, companies, people, places, dates and sums of money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from casewright_legal.entity_names import Names, Span
from casewright_legal.entity_words import MONTHS

#: Maximum number of entities of a text; the first ones are kept.
MAX_ENTITIES = 60

_MONTH = "|".join(MONTHS.split())
# Every repetition is bounded, so that each pattern takes linear time.
_CITATION = re.compile(
    r"\[\d{4}\] ?[A-Z][A-Za-z]{1,11} ?\d{1,5}\b"
    r"|\(\d{4}\) \d{1,4} [A-Z][A-Za-z]{1,9}(?: \([A-Za-z]{1,9}\))? \d{1,5}\b"
)
_SECTION = re.compile(
    r"(?<![\w'’])(?:[Ss]ections?|[Ss]ubsections?|ss?|regs?|cll?|[Rr]egulations?|[Rr]ules?|[Cc]lauses?"
    r"|[Aa]rticles?|[Ss]chedules?|Parts?|Divisions?)\.? ?"
    r"(?:\d{1,4}[A-Z]{0,3}|[IVXLC]{1,7}[A-Z]{0,2})(?:\(\w{1,5}\)){0,4}(?!\w)"
)
_DATE = re.compile(
    rf"(?<!\w)(?:\d{{1,2}}(?:st|nd|rd|th)? )?(?:{_MONTH}) (?:\d{{1,2}},? )?[12]\d{{3}}(?!\w)"
    rf"|(?<!\w)\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTH})(?!\w)"
)
_SUM = re.compile(
    r"(?<!\w)[A-Z]{0,3}[$£€¥] ?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{1,2})?"
    r"(?: (?:thousand|million|billion|trillion)\b)?"
)
_YEAR = re.compile(r"(?<![\w.,$£€-])1[0-9]\d{2}(?![\w,-])|(?<![\w.,$£€-])20\d{2}(?![\w,-])")
_NOT_NAMES = (_CITATION, _SECTION, _DATE, _SUM, _YEAR)


def extract_entities(text: str) -> list[str]:
    """Return the first ``MAX_ENTITIES`` entities of a text, in their order, without duplicates.

    The time is linear in the length of the text.
    """
    used_characters = bytearray(len(text))
    names = Names(text)
    spans: list[Span] = []
    citations, sections, dates, sums, years = (
        (match.span() for match in pattern.finditer(text)) for pattern in _NOT_NAMES
    )
    legal_spans = chain(citations, names.cases(), names.acts(), sections)
    # If two spans overlap, only the one that comes first in this order is an entity.
    for start, end in chain(legal_spans, dates, sums, names.others(), years):
        if not any(used_characters[start:end]):
            used_characters[start:end] = b"\1" * (end - start)
            spans.append((start, end))
    texts = [" ".join(text[start:end].split()) for start, end in sorted(spans)]
    return _unique(texts)[:MAX_ENTITIES]


def is_name(entity: str) -> bool:
    """Return ``True`` if an entity is a name, and not a section, citation, date, year or sum."""
    return not any(pattern.fullmatch(entity) for pattern in _NOT_NAMES)


def _unique(entities: Iterable[str]) -> list[str]:
    """Return entities without duplicates, and without "Nolan" if "Christopher Nolan" is there."""
    entity_by_folded: dict[str, str] = {}
    for entity in entities:
        entity_by_folded.setdefault(entity.casefold(), entity)
    last_words = {folded.rsplit(" ", 1)[1] for folded in entity_by_folded if " " in folded}
    return [entity for folded, entity in entity_by_folded.items() if folded not in last_words]
