"""Reads multi-hop questions, and SciFact's claims; each paragraph or abstract becomes a case.

In HotpotQA (Yang et al. 2018), 2WikiMultihopQA (Ho et al. 2020) and MuSiQue (Trivedi et al. 2022)
all paragraphs that a question needs are relevant. In SciFact (Wadden et al. 2020) most claims cite
one abstract, so SciFact shows what relevance feedback costs if only one case is relevant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from casewright.errors import InputError
from casewright.finetune.judge_sets.sets import SCIFACT, FeedbackSet, LabelledQuestion, is_training
from casewright.finetune.records import read_values
from casewright.stores import Case
from casewright.stores.case import case_id

Parsed = TypeVar("Parsed")

#: The files of the three multi-hop sets, by the sets' names.
FILES = {
    "hotpotqa": "hotpotqa-dev.jsonl",
    "2wikimultihop": "2wikimultihop-dev.jsonl",
    "musique": "musique-dev.jsonl",
}
#: The names of SciFact's file of abstracts and of its files of claims.
CORPUS, CLAIMS = "corpus.jsonl", "claims_*.jsonl"
#: Maximum number of claims in each half (training and test).
MAX_CLAIMS = 75
#: Maximum number of abstracts. All 5,183 abstracts would take long to encode.
MAX_ABSTRACTS = 1500


class Paragraph(NamedTuple):
    """A titled paragraph of an article."""

    title: str
    text: str

    @classmethod
    def of(cls, title: str, text: str) -> Paragraph:
        """Return a paragraph with normalised white space."""
        return cls(*(re.sub(r"\s+", " ", part).strip() for part in (title, text)))


class Item(NamedTuple):
    """A multi-hop question: its record, its paragraphs, and those that support the answer."""

    record: Mapping[str, Any]
    paragraphs: set[Paragraph]
    supporting: set[Paragraph]


def read_lines(file: Path, parse: Callable[[Any], Parsed], expected: str) -> Iterator[Parsed]:
    """Yield the parsed JSON lines of a file; ``InputError`` names a line that cannot be parsed."""
    for _, location, value in read_values(file):
        try:
            yield parse(value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{location}: the line is not one of {expected} ({type(error).__name__}: {error})."
            ) from error


def read_items(file: Path) -> list[Item]:
    """Return the items of a multi-hop file; see ``read_lines``."""
    return list(read_lines(file, _parse_item, "HotpotQA's, 2WikiMultihopQA's or MuSiQue's items"))


def _parse_item(record: Mapping[str, Any]) -> Item:
    if not (isinstance(record["question"], str) and isinstance(record["answer"], str)):
        raise TypeError("question and answer must be texts")
    if "paragraphs" in record:
        labelled = [
            (Paragraph.of(item["title"], item["paragraph_text"]), bool(item["is_supporting"]))
            for item in record["paragraphs"]
        ]
    else:
        supporting_titles = {title for title, _ in record["supporting_facts"]}
        labelled = [
            (Paragraph.of(title, " ".join(sentences)), title in supporting_titles)
            for title, sentences in record["context"]
        ]
    supporting = {paragraph for paragraph, is_supporting in labelled if is_supporting}
    return Item(record, {paragraph for paragraph, _ in labelled}, supporting)


def multihop_set(file: Path, name: str) -> FeedbackSet:
    """Return the set in a file of HotpotQA's or MuSiQue's form, with a case for each paragraph.

    Cases are ordered by title and text, so that their order does not reveal the labels.
    ``InputError`` if a line cannot be parsed, or a question has no unique id or fewer than two
    supporting paragraphs.
    """
    items = read_items(file)
    paragraphs = sorted({paragraph for item in items for paragraph in item.paragraphs})
    cases = {paragraph: _case(*paragraph, name) for paragraph in paragraphs}
    questions: dict[str, LabelledQuestion] = {}
    for record, _, supporting in items:
        key = record.get("_id", record.get("id"))
        if not isinstance(key, str) or not key:
            raise InputError(
                f"{file}: the question {record['question']!r:.80} has no id. Give it one as '_id' "
                "or 'id', which determines the question's half."
            )
        if key in questions:
            raise InputError(f"{file}: two questions have the id {key!r}. Give each its own.")
        if len(supporting) < 2:
            raise InputError(
                f"{file}, question {key!r}: it has {len(supporting)} supporting paragraphs. A "
                "question of several hops has at least two."
            )
        relevant = frozenset(cases[paragraph].id for paragraph in supporting)
        questions[key] = LabelledQuestion(key, record["question"].strip(), relevant)
    if not questions:
        raise InputError(f"{file} holds no question. Give one JSON object a line.")
    return FeedbackSet(name, "paragraphs", list(cases.values()), list(questions.values()))


def _case(title: str, text: str, set_name: str) -> Case:
    case = Case({"title": title, "text": text}, text, metadata={"title": title})
    return replace(case, id=case_id(case, f"bench_feedback_{set_name}"))


def holds_scifact(folder: Path) -> bool:
    """Return True if a folder has the files of SciFact."""
    return (folder / CORPUS).is_file() and any(folder.glob(CLAIMS))


def scifact_set(folder: Path) -> FeedbackSet:
    """Return a set of SciFact claims that cite abstracts; the cases are these and other abstracts.

    Claims and abstracts are ordered by the SHA-256 of their ids. ``InputError`` if a line cannot be
    parsed, an id is not unique, or an abstract is missing.
    """
    corpus = dict(read_lines(folder / CORPUS, _parse_abstract, "SciFact's abstracts"))
    claims = _claims(folder)
    cited = frozenset[str]().union(*(claim.relevant for claim in claims))
    if missing := sorted(cited - corpus.keys()):
        raise InputError(
            f"{folder}: claims cite {len(missing)} abstracts that {CORPUS} does not have, such as "
            f"{missing[0]}. Give the corpus that belongs to the claims."
        )
    further_ids = sorted(corpus.keys() - cited, key=_hash_of)[: max(MAX_ABSTRACTS - len(cited), 0)]
    # Sorted together, so that the order does not reveal the labels.
    cases = {corpus[id_].id: corpus[id_] for id_ in sorted([*cited, *further_ids], key=_hash_of)}
    questions = [
        replace(claim, relevant=frozenset(corpus[id_].id for id_ in claim.relevant))
        for claim in claims
    ]
    origin = {"abstracts_in_file": len(corpus), "abstracts_cited": len(cited)}
    return FeedbackSet(SCIFACT, "paragraphs", list(cases.values()), questions, origin)


def _claims(folder: Path) -> list[LabelledQuestion]:
    """Return test claims, then training claims; ``relevant`` has ids of abstracts, not of cases."""
    claims: dict[str, LabelledQuestion] = {}
    for file in sorted(folder.glob(CLAIMS)):
        for claim in read_lines(file, _parse_claim, "SciFact's claims"):
            if claim.id in claims:
                raise InputError(f"{file}: two claims have the id {claim.id!r}. Give each its own.")
            claims[claim.id] = claim
    citing = [claims[id_] for id_ in sorted(claims, key=_hash_of) if claims[id_].relevant]
    if not citing:
        raise InputError(f"{folder}: no claim cites an abstract, so a search has none to find.")
    test = [claim for claim in citing if not is_training(claim.id)]
    training = [claim for claim in citing if is_training(claim.id)]
    return test[:MAX_CLAIMS] + training[:MAX_CLAIMS]


def _hash_of(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()


def _parse_claim(item: Mapping[str, Any]) -> LabelledQuestion:
    cited = frozenset(str(id_) for id_ in item["cited_doc_ids"])
    return LabelledQuestion(f"{SCIFACT}/{item['id']}", item["claim"].strip(), cited)


def _parse_abstract(item: Mapping[str, Any]) -> tuple[str, Case]:
    title, text = item["title"].strip(), " ".join(item["abstract"]).strip()
    return str(item["doc_id"]), _case(title, text, SCIFACT)
