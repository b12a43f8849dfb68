"""SciFact (Wadden et al. 2020) as a test of feedback: claims, and the abstracts that they cite.

Most claims cite one abstract. What is found relevant then leads to nothing else, so that this set
shows what a loop costs where it has little to find.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from casewright.bench.feedback.sets import SCIFACT, FeedbackQuestion, FeedbackSet
from casewright.bench.feedback.split import is_training
from casewright.errors import InputError
from casewright.stores import Case
from casewright.stores.case import case_id

T = TypeVar("T")

#: The file of the abstracts, and those of the claims beside it.
CORPUS, CLAIMS = "corpus.jsonl", "claims_*.jsonl"
#: Claims of either half at most, and abstracts: all 5,183 of them take long to encode.
CLAIMS_PER_HALF = 75
ABSTRACTS = 1500


def holds_scifact(folder: Path) -> bool:
    """Say whether a folder has the files of SciFact."""
    return (folder / CORPUS).is_file() and any(folder.glob(CLAIMS))


class _Claim(NamedTuple):
    """What a claim says, and the ids in the file of the abstracts that it cites."""

    id: str
    text: str
    cited: frozenset[str]


def scifact_set(folder: Path) -> FeedbackSet:
    """Read the set: claims that cite something, and part of the abstracts.

    Claims are taken in the order of their ids' SHA-256, and so are the abstracts: those that these
    claims cite, and others. Fewer abstracts than the full corpus has make the set easier.

    Args:
        folder: With ``corpus.jsonl`` and the files of claims.

    Raises:
        InputError: A line has another form, a claim has the id of another one or cites an abstract
            that is not there; or no claim cites any.
    """
    corpus = dict(_read(folder / CORPUS, _abstract))
    claims = _chosen(folder)
    needed = frozenset[str]().union(*(claim.cited for claim in claims))
    if missing := sorted(needed - corpus.keys()):
        raise InputError(
            f"{folder}: claims cite {len(missing)} abstracts that {CORPUS} does not have, such as "
            f"{missing[0]}. Give the corpus that belongs to the claims."
        )
    others = sorted(corpus.keys() - needed, key=_order)[: max(ABSTRACTS - len(needed), 0)]
    # Ordered together, so that nothing of the labels is in the order.
    kept = {corpus[id_].id: corpus[id_] for id_ in sorted([*needed, *others], key=_order)}
    questions = [
        FeedbackQuestion(claim.id, claim.text, frozenset(corpus[id_].id for id_ in claim.cited))
        for claim in claims
    ]
    settings = {"abstracts_in_file": len(corpus), "abstracts_cited": len(needed)}
    return FeedbackSet(SCIFACT, "paragraphs", list(kept.values()), questions, settings)


def _order(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()


def _chosen(folder: Path) -> list[_Claim]:
    """Return the claims that are asked, of both halves."""
    claims: dict[str, _Claim] = {}
    for file in sorted(folder.glob(CLAIMS)):
        for claim in _read(file, _claim):
            if claim.id in claims:
                raise InputError(f"{file}: two claims have the id {claim.id!r}. Give each its own.")
            claims[claim.id] = claim
    citing = [claims[id_] for id_ in sorted(claims, key=_order) if claims[id_].cited]
    if not citing:
        raise InputError(f"{folder}: no claim cites an abstract, so that there is none to find.")
    halves = [
        [claim for claim in citing if is_training(claim.id) is training][:CLAIMS_PER_HALF]
        for training in (False, True)
    ]
    return [claim for half in halves for claim in half]


def _read(file: Path, made: Callable[[Any], T]) -> Iterator[T]:
    """Yield what is made of each line; raises InputError."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield made(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{file}, line {number}: this is no line of SciFact ({type(error).__name__}: "
                f"{error})."
            ) from error


def _claim(item: Mapping[str, Any]) -> _Claim:
    cited = frozenset(str(id_) for id_ in item["cited_doc_ids"])
    return _Claim(f"{SCIFACT}/{item['id']}", item["claim"].strip(), cited)


def _abstract(item: Mapping[str, Any]) -> tuple[str, Case]:
    title, text = item["title"].strip(), " ".join(item["abstract"]).strip()
    case = Case({"title": title, "text": text}, text, metadata={"title": title})
    return str(item["doc_id"]), replace(case, id=case_id(case, f"bench_feedback_{SCIFACT}"))
