"""Generates test questions that need two cases (CBR-RAG, section 6.1).

A chat model reads two cases that share an Act or another entity, and writes a question that only
both cases together answer. The two cases are the question's parents, which a search should find.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import one_line
from casewright.planner.chat_call import ask
from casewright.stores import Case
from casewright.stores.facet import component_text
from casewright.stores.progress import progress_bar
from casewright_legal.acts import act_key, is_act
from casewright_legal.entities import is_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: An entity makes pairs if at most this many cases have it; a more frequent one may be a court.
MAX_CASES_OF_ENTITY = 8
PROMPT = """\
Below are two legal cases that have in common: {shared}. Write one question that can only be \
answered from both cases together, and its answer. The question stands for itself: it does not \
speak of "the first case" or "the texts above". Answer in this form and in no other:

Question: …
Answer: …"""
_MAX_QUESTION_CHARACTERS = 700
_REPLY = re.compile(r"question\W{0,4}:(.*?)\banswer\W{0,4}:(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class CasePair:
    """Two cases, and the entities that both have."""

    first: Case
    second: Case
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A question that needs two cases, with the entities that the cases share.

    Attributes:
        id: An id that is derived from the parents, and is the same in every run.
        answer: The reference answer.
        parents: The results of ``cited_as`` for both cases.
    """

    id: str
    question: str
    answer: str
    parents: tuple[str, str]
    shared: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the question as a mapping that can be written as JSON."""
        return {**asdict(self), "parents": list(self.parents), "shared": list(self.shared)}


@dataclass(frozen=True, slots=True)
class PairQuestions:
    """The usable questions of a model, and the number of skipped pairs for each reason."""

    questions: list[PairQuestion]
    skipped: Mapping[str, int]


def entity_pairs(
    cases: Sequence[Case], *, limit: int | None = None, seed: int = 0
) -> list[CasePair]:
    """Return at most ``limit`` pairs of cases that share an Act or another name, in random order.

    The time is linear in the number of entities. Two cases with the same citation are not a pair.
    """
    # For each entity, its spelling in each case, by the index of the case.
    spellings_by_entity: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for index, case in enumerate(cases):
        for entity in case.problem.get("entities") or ():
            if is_name(entity):
                key = act_key(entity) if is_act(entity) else " ".join(entity.casefold().split())
                spellings_by_entity[key].setdefault(index, entity)
    shared: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for spellings in spellings_by_entity.values():
        if len(spellings) <= MAX_CASES_OF_ENTITY:
            for first, second in combinations(spellings, 2):
                if cited_as(cases[first]) != cited_as(cases[second]):
                    shared[first, second].append(spellings[first])
    pairs = sorted(shared)
    order = np.random.default_rng(seed).permutation(len(pairs))[:limit]
    return [
        CasePair(cases[first], cases[second], tuple(shared[first, second]))
        for first, second in (pairs[index] for index in order)
    ]


def write_questions(
    pairs: Sequence[CasePair],
    model: BaseChatModel,
    *,
    seconds: float = 60.0,
    progress: bool | None = None,
) -> PairQuestions:
    """Return questions that a chat model writes, one for each pair, in at most ``seconds`` each.

    Pairs for which the model fails, or does not write a question with an answer, are skipped and
    counted.
    """
    questions: list[PairQuestion] = []
    skipped: Counter[str] = Counter()
    with progress_bar("Writing questions", len(pairs), show=progress) as advance:
        for pair in pairs:
            question_or_reason = _write_question(pair, model, seconds)
            if isinstance(question_or_reason, str):
                skipped[question_or_reason] += 1
            else:
                questions.append(question_or_reason)
            advance(1)
    return PairQuestions(questions, dict(skipped))


def cited_as(case: Case) -> str:
    """Return a case's citation, else its key, else its id."""
    return str(case.metadata.get("citation") or case.metadata.get("key") or case.id)


def _write_question(pair: CasePair, model: BaseChatModel, seconds: float) -> PairQuestion | str:
    """Return a pair's question, or the reason why there is none."""
    from langchain_core.messages import HumanMessage

    try:
        reply = str(ask(model, [HumanMessage(_prompt(pair))], seconds).text)
    except Exception as error:  # noqa: BLE001 - one pair's failure must not lose the others
        return f"the model failed: {one_line(error)}"
    match = _REPLY.search(reply)
    if match is None:
        return "the model's answer has another form"
    question, answer = (" ".join(part.split()).strip('*_"“” ') for part in match.groups())
    if not question.endswith("?") or len(question) > _MAX_QUESTION_CHARACTERS:
        return "the model wrote no question"
    if not answer:
        return "the model wrote no answer"
    parents = (cited_as(pair.first), cited_as(pair.second))
    digest = hashlib.sha256("\n".join(parents).encode("utf-8", "replace")).hexdigest()[:10]
    return PairQuestion(f"pair-{digest}", question, answer, parents, pair.shared)


def _prompt(pair: CasePair) -> str:
    texts = [component_text(case.problem["support"]) for case in (pair.first, pair.second)]
    # A text cannot contain its own hash, so it cannot forge the end of the quotation.
    tag = "case-" + hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]
    quoted = [
        f'<{tag} citation="{cited_as(case)}">\n{text}\n</{tag}>'
        for case, text in zip((pair.first, pair.second), texts, strict=True)
    ]
    return "\n\n".join([PROMPT.format(shared="; ".join(pair.shared)), *quoted])
