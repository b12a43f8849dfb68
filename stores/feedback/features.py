"""Features of a candidate for the relevance judge without a language model.

Nothing is encoded or searched: vectors, scores and texts come from the hits. A candidate's features
depend on the question, on the candidates that were judged relevant earlier, and on the scores, but
not the texts, of other candidates: no candidate's text affects another candidate's verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casewright.stores.feedback.judge import Candidate, JudgeRequest
from casewright.stores.hit import Hit

#: Names of the features in every round.
ALWAYS = (
    *("text_cosine", "title_cosine", "gap_best", "log_rank", "z_score", "words_in_text"),
    *("words_in_title", "title_whole", "title_in_question", "source_named"),
)
#: Names of the features in the first round, before any candidate was found relevant.
FIRST = (*ALWAYS, "score_share")
#: Names of the features in later rounds, which have relevant candidates.
LATER = (
    *(*ALWAYS, "new_words", "covered", "text_like", "title_like", "title_named"),
    *("title_words_named", "names_candidate", "names_shared", "log_relevant"),
    *("same_title", "same_source", "beside"),
)
#: Temperature of the softmax in ``score_share``, in units of the score.
TEMPERATURE = 0.05
#: Tolerance for the length of a unit vector in single precision.
LENGTH_TOLERANCE = 1e-2
#: Components and metadata fields that are titles, the most specific first.
TITLES = ("symbol", "title", "name", "heading", "subject")
#: Minimum characters of a name or a title; shorter names occur in any text by chance.
MIN_CHARACTERS = 4

_WORD = re.compile(r"\w+")
#: A run of capitalised words or numbers, with small words between them ("Bank of England").
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:(?:of|the|de|du|von|van|and)\s+)?[A-Z0-9][\w'-]*)*")
_BRACKETS = re.compile(r"\([^()]*\)")
#: Words of closed classes, which are no evidence of relevance.
_CLOSED_CLASSES = (
    "a about after all also an and any are as at be because been before being between both but by "
    "can could did do does doing during each few for from further had has have having he her hers "
    "him his how i if in into is it its just me more most my no nor not of on once one only or "
    "other our out over own same she should so some such than that the their them then there "
    "these they this those through to too under until up very was we were what when where which "
    "while who whom whose why will with would you your s t many much"
)
STOPWORDS = frozenset(_CLOSED_CLASSES.split())

_Vectors = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class _Terms:
    """The words and names of a text.

    ``title`` has the title's words in lower case, joined by blanks, without words in brackets.
    ``body`` has the text's words in the same form, with a blank on either side. ``words`` are the
    content words of title and text, ``title_words`` of the title; ``names`` are the text's names.
    """

    title: str
    body: str
    words: frozenset[str]
    title_words: frozenset[str]
    names: frozenset[str]


def feature_rows(request: JudgeRequest) -> NDArray[np.float64]:
    """Return the features ``FIRST`` or ``LATER`` of n candidates: array (n, features).

    Features of candidate and question:

    - ``text_cosine``, ``title_cosine``: the largest cosine of text facets and of title facets with
      the question; 0 without a title facet.
    - ``gap_best``: the score minus the best score in the request.
    - ``log_rank``: log2(1 + rank) by nearness. ``z_score``: nearness in standard deviations of its
      round, so that the unit of a search's scores does not matter.
    - ``score_share``: softmax of the scores at ``TEMPERATURE``.
    - ``words_in_text``: share of the question's content words in title and text;
      ``words_in_title``: in the title. ``title_in_question``: share of the title's words in the
      question. ``title_whole``, ``source_named``: the question contains the title, the source.

    Features of candidate and relevant texts:

    - ``covered``: share of the question's words in the relevant texts; ``new_words``: share of
      the question's other words in the candidate.
    - ``text_like``, ``title_like``: the largest cosine of text to text, and title to title.
    - ``title_named``: a relevant text contains the title, and the question does not;
      ``title_words_named``: share of the title's new words (not in the question) in relevant texts.
    - ``names_candidate``: the candidate contains a relevant title that is not in the question.
      ``names_shared``: number of the candidate's new names (capitalised, not in the question) that
      relevant texts have, divided by the root of the number of the candidate's new names.
    - ``log_relevant``: log(1 + number of relevant candidates).
    - ``same_title``, ``same_source``, ``beside``: a relevant candidate has the same title and
      source, has the same source, or is the chunk before or after.
    """
    question = _text_terms("", request.question)
    batch, relevant = list(request.candidates), list(request.relevant)
    candidate_terms = [_candidate_terms(candidate) for candidate in batch]
    # Features that are not finite, since a score is not finite, become 0 at the end.
    with np.errstate(all="ignore"):
        rows = _common_features(question, batch, candidate_terms, relevant)
    if relevant:
        comparison = _RelevantTexts(question, relevant)
        for row, candidate, terms in zip(rows, batch, candidate_terms, strict=True):
            row |= comparison.features(candidate, terms)
    names = LATER if relevant else FIRST
    matrix = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    return np.nan_to_num(matrix.reshape(len(batch), len(names)), posinf=0.0, neginf=0.0)


def _common_features(
    question: _Terms,
    batch: Sequence[Candidate],
    candidate_terms: Sequence[_Terms],
    relevant: Sequence[Candidate],
) -> list[dict[str, float]]:
    best = max((candidate.hit.score for candidate in (*batch, *relevant)), default=0.0)
    nearness = np.array([candidate.nearness for candidate in batch], dtype=np.float64)
    z_scores = (nearness - nearness.mean()) / (nearness.std() + 1e-6) if batch else nearness
    scores = np.array([candidate.hit.score for candidate in batch], dtype=np.float64)
    exponentials = np.exp((scores - scores.max(initial=-np.inf)) / TEMPERATURE)
    shares = exponentials / exponentials.sum()
    rows = []
    for candidate, terms, z_score, score_share in zip(
        batch, candidate_terms, z_scores.tolist(), shares.tolist(), strict=True
    ):
        text_cosine, title_cosine = _text_and_title(candidate.hit.facet_scores)
        rows.append(
            {
                "text_cosine": text_cosine,
                "title_cosine": title_cosine,
                "gap_best": candidate.hit.score - best,
                "log_rank": math.log2(1 + int((nearness > candidate.nearness).sum())),
                "z_score": z_score,
                "score_share": score_share,
                "words_in_text": _share(terms.words, question.words),
                "words_in_title": _share(terms.title_words, question.words),
                "title_whole": float(_contains(terms.title, question.body)),
                "title_in_question": _share(question.words, terms.title_words),
                "source_named": float(_contains(_phrase(candidate.source[1]), question.body)),
            }
        )
    return rows


class _RelevantTexts:
    """The relevant candidates, for comparison with other candidates."""

    def __init__(self, question: _Terms, relevant: Sequence[Candidate]) -> None:
        candidate_terms = [_candidate_terms(candidate) for candidate in relevant]
        self.question, self.relevant = question, relevant
        self.vectors = [(candidate.hit, _facet_vectors(candidate.hit)) for candidate in relevant]
        self.titles = [terms.title for terms in candidate_terms]
        self.words = frozenset[str]().union(*(terms.words for terms in candidate_terms))
        self.names = frozenset[str]().union(*(terms.names for terms in candidate_terms))
        # Each text has a blank on either side, so that no phrase continues in the next text.
        self.text = " ".join(terms.body for terms in candidate_terms)
        self.new_titles = [title for title in self.titles if not _contains(title, question.body)]

    def features(self, candidate: Candidate, terms: _Terms) -> dict[str, float]:
        question = self.question
        vectors = _facet_vectors(candidate.hit)
        pairs = [_cosines(candidate.hit, vectors, *relevant) for relevant in self.vectors]
        text_cosine, title_cosine = (max(cosines) for cosines in zip(*pairs, strict=True))
        is_named = not _contains(terms.title, question.body) and _contains(terms.title, self.text)
        new_title_words = terms.title_words - question.words
        named_words = sum(f" {word} " in self.text for word in new_title_words)
        new_names = [name for name in terms.names if f" {name} " not in question.body]
        shared_count = sum(name in self.names for name in new_names)
        same_title = any(
            terms.title
            and terms.title == other_title
            and (candidate.same_source(other) or not (candidate.source[1] or other.source[1]))
            for other_title, other in zip(self.titles, self.relevant, strict=True)
        )
        has_relevant_title = any(_contains(title, terms.body) for title in self.new_titles)
        return {
            "new_words": _share(terms.words, question.words - self.words),
            "covered": _share(self.words, question.words),
            "text_like": text_cosine,
            "title_like": title_cosine,
            "title_named": float(is_named),
            "title_words_named": named_words / max(1, len(new_title_words)),
            "names_candidate": float(has_relevant_title),
            "names_shared": shared_count / math.sqrt(max(1, len(new_names))),
            "log_relevant": math.log1p(len(self.relevant)),
            "same_title": float(same_title),
            "same_source": float(any(candidate.same_source(other) for other in self.relevant)),
            "beside": float(any(candidate.beside(other) for other in self.relevant)),
        }


def _cosines(
    hit: Hit, vectors: _Vectors, other_hit: Hit, other_vectors: _Vectors
) -> tuple[float, float]:
    if vectors and vectors.keys() == other_vectors.keys():
        cosines = {name: float(vectors[name] @ other_vectors[name]) for name in vectors}
        return _text_and_title(cosines)
    first, second = (np.asarray(h.vector, dtype=np.float64).ravel() for h in (hit, other_hit))
    if first.shape != second.shape:
        return 0.0, 0.0
    # The sum over the facets, each with a unit vector, is divided by their number.
    return float(first @ second) / max(1, len(hit.facet_scores)), 0.0


def _facet_vectors(hit: Hit) -> _Vectors:
    """Return the facets' vectors by name; empty if the hit's vector cannot be split.

    Facets of equal dimensions with unit vectors are assumed, since a hit has no dimensions.
    """
    vector = np.asarray(hit.vector, dtype=np.float64).ravel()
    count = len(hit.facet_scores)
    if not count or len(vector) % count:
        return {}
    parts = vector.reshape(count, -1)
    lengths = np.linalg.norm(parts, axis=1)
    # The vector of an absent component is zeros.
    if not ((lengths <= LENGTH_TOLERANCE) | (abs(lengths - 1) <= LENGTH_TOLERANCE)).all():
        return {}
    return dict(zip(hit.facet_scores, parts, strict=True))


def _text_and_title(cosines: Mapping[str, float]) -> tuple[float, float]:
    """Return the largest cosine of the text facets, and of the title facets (``TITLES``).

    A single facet counts as text; without a title facet, the second cosine is 0.
    """
    titles = [name for name in cosines if name in TITLES] if len(cosines) > 1 else []
    texts = [value for name, value in cosines.items() if name not in titles]
    if not texts:
        return max(cosines.values(), default=0.0), 0.0
    return max(texts), max((cosines[name] for name in titles), default=0.0)


@lru_cache(maxsize=512)
def _text_terms(title: str, text: str) -> _Terms:
    """Return the words of a text; a question has an empty title."""
    plain_title = _BRACKETS.sub("", title)
    names = frozenset(
        _phrase(match.group())
        for match in _NAME.finditer(text)
        if len(match.group()) >= MIN_CHARACTERS and match.group().lower() not in STOPWORDS
    )
    words, title_words = _content_words(f"{title} {text}"), _content_words(plain_title)
    return _Terms(_phrase(plain_title), f" {_phrase(text)} ", words, title_words, names)


def _candidate_terms(candidate: Candidate) -> _Terms:
    """Return the words of a candidate, without the lines that only repeat its title."""
    title = _title(candidate)
    problem = candidate.hit.case.problem
    titles = {title, *(problem.get(name) for name in TITLES if isinstance(problem.get(name), str))}
    lines = candidate.text.split("\n")
    return _text_terms(title, "\n".join(line for line in lines if line.strip() not in titles))


def _title(candidate: Candidate) -> str:
    case = candidate.hit.case
    for name in TITLES:
        for value in (case.problem.get(name), case.metadata.get(name)):
            if isinstance(value, str) and value.strip():
                return value.strip()
    return ""


def _phrase(text: str) -> str:
    """Return a text's words, lower case, joined by blanks."""
    return " ".join(_words(text))


def _contains(phrase: str, body: str) -> bool:
    """Return ``True`` if a body contains a phrase as whole words, and the phrase is not short."""
    return len(phrase) >= MIN_CHARACTERS and f" {phrase} " in body


def _share(found: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of ``whole`` that is in ``found``; 0 if ``whole`` is empty."""
    return len(found & whole) / len(whole) if whole else 0.0


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(text) if word not in STOPWORDS)
