"""The data of the legal benchmark: cases, and questions with two parent cases each.

The sets are the domain's shipped cases, ALQA, and three sets of multi-hop questions. The cases of
these three are paragraphs of an encyclopedia (see ``casewright.finetune.judge_sets.paragraphs``).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from casewright.errors import InputError
from casewright.finetune.judge_sets.paragraphs import FILES, Paragraph, read_items, read_lines
from casewright.stores import Case
from casewright_legal.alqa import read_alqa
from casewright_legal.cases import qa_case
from casewright_legal.data import data_file
from casewright_legal.entities import extract_entities
from casewright_legal.question_pairs import cited_as

#: A sentence's subject with more words is not taken for the paragraph's title.
MAX_SUBJECT_WORDS = 12
#: The minimum number of words in a sentence; shorter texts are abbreviations or headings.
MIN_SENTENCE_WORDS = 4

_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s+[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Rev|Hon|Gen|Col|Lt|Capt|Sgt|No|Vol|vs|Inc|Ltd|Co|c|ca|née)"
    r"|\b[A-Z])\.$"
)
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_COPULA = re.compile(r"^(?P<subject>.+?)(?:,.*?)?\s(?P<verb>is|are|was|were)\s(?P<rest>.+)$")
_DATED_PARTICIPLE = re.compile(
    r"^(?P<participle>\w+(?:ed|born|built|made|held|won|written|sung|set|led))\b"
    r"[^,;.]*?\b(?:in|on|between|from)\s(?:[A-Z][a-z]+\s)?(?:\d{1,2}\s)?(?:[A-Z][a-z]+\s)?\d{4}\b"
)
_LIFE_DATES = re.compile(r"\([^()]*?(?:\bborn\b|\bdied\b|\d{4}\s*(?:–|-+|—)\s*[^()]*\d{4})[^()]*\)")
_PERSONAL_PRONOUN = re.compile(r"[.!?][\"'”’)\]]*\s(?:He|She|His|Her)\s")
_TIME = re.compile(r"^(?P<time>(?:In|On|During|Since|By|After|Before|From)\s[^,]{0,40}\d{4}s?),")
_WORD = re.compile(r"\w+")


def paragraph_case(paragraph: Paragraph) -> Case:
    """Return a paragraph of an encyclopedia as a case.

    The support is the paragraph, and the answer is its first sentence, from which the question is
    derived. The entities are those in the title and the text.
    """
    title, text = paragraph
    unique = dict.fromkeys([title, *extract_entities(f"{title}. {text}")])
    entities = [entity for entity in unique if entity]
    return qa_case(paragraph_question(paragraph), text, entities, first_sentence(text), key=title)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, or the whole text if it is only one sentence."""
    for end in _SENTENCE_END.finditer(text):
        sentence = text[: end.end()]
        is_complete = len(sentence.split()) >= MIN_SENTENCE_WORDS
        if is_complete and not _ABBREVIATED.search(text[: end.start() + 1]):
            return sentence
    return text


def paragraph_question(paragraph: Paragraph) -> str:
    """Return a question that the paragraph's first sentence answers.

    With T the title, “T was founded in 1926” answers “When was T founded?”, and “T (born 1980) is a
    singer” answers “Who is T?” or “What is T?”. A sentence that starts with a time answers “What
    happened to T in 1992?”, any other sentence “What is known about T?”.
    """
    title, text = paragraph
    sentence = first_sentence(text)
    plain = _PARENTHESES.sub("", sentence)
    copula = _COPULA.match(plain)
    if copula and _is_title(copula["subject"], title):
        if dated := _DATED_PARTICIPLE.match(copula["rest"]):
            return f"When {copula['verb']} {title} {dated['participle']}?"
        person = _LIFE_DATES.search(sentence) or _PERSONAL_PRONOUN.search(text)
        return f"{'Who' if person else 'What'} {copula['verb']} {title}?"
    if time := _TIME.match(plain):
        return f"What happened to {title} {time['time'][0].lower()}{time['time'][1:]}?"
    return f"What is known about {title}?"


def _is_title(subject: str, title: str) -> bool:
    """Return ``True`` if the subject is short and shares a word with the title."""
    words = _WORD.findall(subject.lower())
    return len(words) <= MAX_SUBJECT_WORDS and not set(words).isdisjoint(
        _WORD.findall(_PARENTHESES.sub("", title).lower())
    )


#: The names of two sets. ``--data shipped`` chooses the domain's shipped set without a folder.
SHIPPED, ALQA = "shipped", "alqa"
#: The random seed of development halves, shuffled labels and bootstrap samples.
SEED = 0
#: The minimum number of questions in a set.
MIN_QUESTIONS = 4
_ADVICE = (
    "Give the word shipped, or a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or "
    "musique-dev.jsonl, or a folder with ALQA's qa.jsonl and a pairs.jsonl."
)


class SetQuestion(NamedTuple):
    """A question whose answer needs two cases; ``parents`` are the cases' indices in the set."""

    text: str
    parents: tuple[int, int]
    reference: str


class QaSet(NamedTuple):
    """Cases ⟨question, support, entities, answer⟩, and questions with exactly two parents."""

    name: str
    cases: Sequence[Case]
    questions: Sequence[SetQuestion]
    left_out_count: int = 0  # the number of the files' questions with more or fewer parents

    def halves(self) -> tuple[list[int], list[int]]:
        """Return the indices of the questions in the development half and in the test half."""
        order = list(range(len(self.questions)))
        random.Random(SEED).shuffle(order)
        middle = len(order) // 2
        return sorted(order[:middle]), sorted(order[middle:])


def find_sets(data: Path | None, only: str | None = None, limit: int | None = None) -> list[QaSet]:
    """Return the sets of a folder; if ``data`` is ``None``, the domain's shipped set.

    The multi-hop files and the files of ALQA (``qa.jsonl`` and ``pairs.jsonl``) are in the folder,
    or in its subfolders ``multihop`` and ``alqa``. ``only`` is the name of the only set to return,
    and ``limit`` the maximum number of questions of a set. Raise ``InputError`` if the folder has
    no such set, or a file has another format.
    """
    readers: list[tuple[str, Callable[[], QaSet]]] = []
    if data is None:
        cases, pairs = (Path(str(data_file(name))) for name in ("cases", "pairs"))
        readers.append((SHIPPED, partial(read_pairs, SHIPPED, cases, pairs)))
    else:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_ADVICE}")
        for name, file_name in FILES.items():
            for folder in (data, data / "multihop"):
                if (file := folder / file_name).is_file():
                    readers.append((name, partial(read_multihop, file, name)))
        for folder in (data, data / "alqa"):
            if (file := folder / "qa.jsonl").is_file():
                readers.append((ALQA, partial(read_pairs, ALQA, file, folder / "pairs.jsonl")))
        if not readers:
            raise InputError(
                f"--data {data}: it holds no set of questions with two parent cases. {_ADVICE}"
            )
    sets = [read() for name, read in readers if only in (None, name)]
    if not sets:
        raise InputError(
            f"--data {data or SHIPPED}: it holds no set {only!r}. There are: "
            f"{', '.join(name for name, _ in readers)}. Known sets are: "
            f"{', '.join([*FILES, ALQA, SHIPPED])}."
        )
    for data_set in sets:
        if (count := len(data_set.questions)) < MIN_QUESTIONS:
            raise InputError(
                f"Set {data_set.name} has {count} questions with two parent cases. "
                f"It needs {MIN_QUESTIONS}: two in each half."
            )
    return [data_set._replace(questions=data_set.questions[:limit]) for data_set in sets]


def read_multihop(file: Path, name: str) -> QaSet:
    """Return a set; each paragraph is a case, each item with two supporting paragraphs a question.

    The paragraphs are sorted, so that the order of the cases does not depend on the questions.
    """
    items = read_items(file)
    paragraphs = sorted({paragraph for item in items for paragraph in item.paragraphs})
    index_by_paragraph = {paragraph: index for index, paragraph in enumerate(paragraphs)}
    questions = []
    for record, _, supporting in items:
        if len(supporting) == 2:
            first, second = sorted(index_by_paragraph[paragraph] for paragraph in supporting)
            question, answer = record["question"].strip(), record["answer"].strip()
            # Like an answer of ALQA, the reference is a whole sentence.
            reference = f"The answer to the question “{question}” is: {answer}."
            questions.append(SetQuestion(record["question"], (first, second), reference))
    cases = [paragraph_case(paragraph) for paragraph in paragraphs]
    return QaSet(name, cases, questions, len(items) - len(questions))


def read_pairs(name: str, cases_file: Path, pairs_file: Path) -> QaSet:
    """Return a set; ``pairs_file`` names parents by unique citations, or by indices from 0."""
    cases = read_alqa(cases_file)
    indices_by_key: dict[str | int, list[int]] = {index: [index] for index in range(len(cases))}
    for index, case in enumerate(cases):
        indices_by_key.setdefault(cited_as(case), []).append(index)
    expected = "JSON objects: question, answer, and parents (two citations of cases)"
    records = list(read_lines(pairs_file, partial(_question, indices_by_key), expected))
    questions = [question for question in records if question is not None]
    return QaSet(name, cases, questions, len(records) - len(questions))


def _question(
    indices_by_key: Mapping[str | int, Sequence[int]], record: Mapping[str, Any]
) -> SetQuestion | None:
    """Return a question; ``None`` if it does not have two parents with unique citations."""
    question, answer, parents = record["question"], record["answer"], record["parents"]
    if not all(isinstance(text, str) and text for text in (question, answer)):
        raise TypeError("question and answer are texts")
    if not isinstance(parents, list):
        raise TypeError("parents are two citations of cases")
    keys = [key if isinstance(key, int) else str(key) for key in parents]
    candidates = [indices_by_key.get(key, ()) for key in keys]
    if () in candidates:
        raise ValueError(f"no case is cited as {parents[candidates.index(())]!r}")
    unique = sorted({indices[0] for indices in candidates if len(indices) == 1})
    return SetQuestion(question, (unique[0], unique[1]), answer) if len(unique) == 2 else None
