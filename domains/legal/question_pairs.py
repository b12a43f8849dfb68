"""Test questions that two cases answer together (CBR-RAG, section 6.1).

Two cases that share an Act or another entity are shown to a chat model, which asks what only both
of them answer. The two are the question's parents: what its retrieval is measured by.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.domains.legal.acts import act_key, is_act
from casewright.domains.legal.entities import is_name
from casewright.errors import InputError, told
from casewright.planner.chat_call import ask
from casewright.stores import Case
from casewright.stores.facet import component_text
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: An entity of more cases than this joins none of them: a state, a court.
MOST_CASES = 8
PROMPT = """\
Below are two legal cases that have in common: {shared}. Write one question that can only be \
answered from both cases together, and its answer. The question stands for itself: it does not \
speak of "the first case" or "the texts above". Answer in this form and in no other:

Question: …
Answer: …"""
_LONGEST_QUESTION = 700
_REPLY = re.compile(r"question\W{0,4}:(.*?)\banswer\W{0,4}:(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class CasePair:
    """Two cases, and the entities that both name."""

    first: Case
    second: Case
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A question that two cases answer.

    Attributes:
        id: From its parents; the same in every run.
        question: The question.
        answer: Its answer, to compare other answers to.
        parents: What the two cases are cited by: their ``citation``, ``key`` or id.
        shared: The entities that both name.
    """

    id: str
    question: str
    answer: str
    parents: tuple[str, str]
    shared: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            "id": self.id,
            "question": self.question,
            "answer": self.answer,
            "parents": list(self.parents),
            "shared": list(self.shared),
        }


@dataclass(frozen=True, slots=True)
class PairQuestions:
    """The questions that a model wrote.

    Attributes:
        questions: Those that can be used.
        skipped: Why a pair has no question, to how many pairs that befell.
    """

    questions: list[PairQuestion]
    skipped: Mapping[str, int]


def entity_pairs(
    cases: Sequence[Case], *, limit: int | None = None, most_cases: int = MOST_CASES, seed: int = 0
) -> list[CasePair]:
    """Return pairs of cases that share an Act or another name, in an order drawn by the seed.

    Found by an index of entities, in time linear in their number: an entity joins at most
    ``most_cases`` cases. Two cases with one citation are no pair.

    Args:
        cases: Made by ``qa_case``.
        limit: Most pairs; ``None`` returns all of them.
        most_cases: Entities of more cases are ignored; at least 2.
        seed: Of the order.

    Raises:
        InputError: ``most_cases`` is below 2, or ``limit`` or ``seed`` below 0.
    """
    if most_cases < 2 or seed < 0 or (limit is not None and limit < 0):
        raise InputError(
            f"limit={limit}, most_cases={most_cases}, seed={seed}: limit and seed are at least 0, "
            "most_cases at least 2."
        )
    index: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for number, case in enumerate(cases):
        for entity in case.problem.get("entities") or ():
            if is_name(entity):
                index[_key(entity)].setdefault(number, entity)
    shared: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for named in index.values():
        if len(named) <= most_cases:
            for first, second in combinations(named, 2):
                if cited_as(cases[first]) != cited_as(cases[second]):
                    shared[first, second].append(named[first])
    found = sorted(shared)
    drawn = np.random.default_rng(seed).permutation(len(found))[:limit]
    return [
        CasePair(cases[first], cases[second], tuple(shared[first, second]))
        for first, second in (found[place] for place in drawn)
    ]


def write_questions(
    pairs: Sequence[CasePair],
    model: BaseChatModel,
    *,
    seconds: float = 60.0,
    progress: bool | None = None,
) -> PairQuestions:
    """Have a chat model write one question a pair, both supports shown.

    An answer that holds no question with its answer is skipped and counted; so is a pair at which
    the model fails.

    Args:
        pairs: Made by ``entity_pairs``.
        model: Any LangChain chat model.
        seconds: Deadline for one pair.
        progress: Show a bar on stderr; ``None`` shows it on a terminal for long work.
    """
    questions: list[PairQuestion] = []
    skipped: Counter[str] = Counter()
    with progress_bar("Writing questions", len(pairs), show=progress) as advance:
        for pair in pairs:
            written = _written(pair, model, seconds)
            if isinstance(written, str):
                skipped[written] += 1
            else:
                questions.append(written)
            advance(1)
    return PairQuestions(questions, dict(skipped))


def cited_as(case: Case) -> str:
    """Return what a case is cited by: its citation, else its key, else its id."""
    known = case.metadata
    return str(known.get("citation") or known.get("key") or case.id)


def _written(pair: CasePair, model: BaseChatModel, seconds: float) -> PairQuestion | str:
    """Return a pair's question, or why it has none."""
    from langchain_core.messages import HumanMessage

    try:
        reply = str(ask(model, [HumanMessage(_prompt(pair))], seconds).text)
    except Exception as error:  # noqa: BLE001 - one pair's failure must not lose the others
        return f"the model failed: {told(error)}"
    found = _REPLY.search(reply)
    if found is None:
        return "the model's answer has another form"
    question, answer = (_plain(part) for part in found.groups())
    if not question.endswith("?") or len(question) > _LONGEST_QUESTION:
        return "the model wrote no question"
    if not answer:
        return "the model wrote no answer"
    parents = (cited_as(pair.first), cited_as(pair.second))
    made = hashlib.sha256("\n".join(parents).encode("utf-8", "replace")).hexdigest()[:10]
    return PairQuestion(f"pair-{made}", question, answer, parents, pair.shared)


def _prompt(pair: CasePair) -> str:
    texts = [component_text(case.problem["support"]) for case in (pair.first, pair.second)]
    # No text can hold its own hash, so none can forge the end of what is quoted.
    tag = "case-" + hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]
    quoted = [
        f'<{tag} citation="{cited_as(case)}">\n{text}\n</{tag}>'
        for case, text in zip((pair.first, pair.second), texts, strict=True)
    ]
    return "\n\n".join([PROMPT.format(shared="; ".join(pair.shared)), *quoted])


def _plain(text: str) -> str:
    return " ".join(text.split()).strip('*_"“” ')


def _key(entity: str) -> str:
    return act_key(entity) if is_act(entity) else " ".join(entity.casefold().split())
