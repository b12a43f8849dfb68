"""Features of candidates, from which ``OfflineJudge`` judges them without a language model.

Nothing is encoded or searched: vectors, scores and texts come from the hits. A candidate's features
depend on the question, on the candidates of earlier rounds that were judged relevant, and on the
scores of the same round's candidates, but not on their texts.
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
#: Names of the features in later rounds, after candidates were found relevant.
LATER = (
    *(*ALWAYS, "new_words", "covered", "text_like", "title_like", "title_named"),
    *("title_words_named", "names_candidate", "names_shared", "log_relevant"),
    *("same_title", "same_source", "beside"),
)
#: Temperature of the softmax in ``score_share``, in units of the score.
TEMPERATURE = 0.05
#: Tolerance for the length of a unit vector in single precision.
LENGTH_TOLERANCE = 1e-2
#: Names of components, metadata fields and facets that are titles, the most specific first.
TITLE_NAMES = ("symbol", "title", "name", "heading", "subject")
#: Minimum characters of a name or a title; shorter names occur in any text by chance.
MIN_CHARACTERS = 4

_WORD = re.compile(r"\w+")
#: A run of capitalised words or numbers, with small words between them ("Bank of England").
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:(?:of|the|de|du|von|van|and)\s+)?[A-Z0-9][\w'-]*)*")
_BRACKETS = re.compile(r"\([^()]*\)")
#: Function words, which are no evidence of relevance.
_FUNCTION_WORDS = (
    "a about after all also an and any are as at be because been before being between both but by "
    "can could did do does doing during each few for from further had has have having he her hers "
    "him his how i if in into is it its just me more most my no nor not of on once one only or "
    "other our out over own same she should so some such than that the their them then there "
    "these they this those through to too under until up very was we were what when where which "
    "while who whom whose why will with would you your s t many much"
)
STOPWORDS = frozenset(_FUNCTION_WORDS.split())

_VectorByFacet = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class _Terms:
    """The words and proper names of a text and its title.

    ``title`` has the title's words in lower case, joined by blanks, without words in brackets.
    ``body`` has the text's words in the same form, with a blank on either side. ``words`` has
    the words of title and text except stopwords, ``title_words`` those of the title alone.
    """

    title: str
    body: str
    words: frozenset[str]
    title_words: frozenset[str]
    names: frozenset[str]


def feature_rows(request: JudgeRequest) -> NDArray[np.float64]:
    """Return the features of n candidates, ``FIRST`` or ``LATER``, as an array (n, features).

    Words do not include stopwords. Nearness is a candidate's score in the search of its round.
    Features of candidate and question:

    - ``text_cosine``: the question's largest cosine with a text facet; ``title_cosine``: with a
      title facet, 0 without one.
    - ``gap_best``: the score minus the best score in the request.
    - ``log_rank``: log2(1 + number of nearer candidates). ``z_score``: nearness minus its mean, in
      standard deviations, so that the unit of a search's scores does not matter.
    - ``score_share``: softmax of the scores at ``TEMPERATURE``.
    - ``words_in_text``: share of the question's words that title or text contain;
      ``words_in_title``: that the title contains. ``title_in_question``: share of the title's words
      that the question contains. ``title_whole``: the question contains the whole title;
      ``source_named``: it contains the source's name.

    Features of candidate and relevant texts, the texts of the relevant candidates:

    - ``covered``: share of the question's words that relevant texts contain; ``new_words``: of the
      question's other words, the share that the candidate contains.
    - ``text_like``, ``title_like``: the largest cosine of text to text, and title to title.
    - ``title_named``: a relevant text contains the title, and the question does not;
      ``title_words_named``: of the title's words not in the question, the share in relevant texts.
    - ``names_candidate``: the candidate contains a relevant candidate's title that the question
      does not contain. ``names_shared``: number of the candidate's new names (capitalised, not in
      the question) that relevant texts have, divided by the root of the number of its new names.
    - ``log_relevant``: log(1 + number of relevant candidates).
    - ``same_title``: a relevant candidate has the same title and source; ``same_source``: one has
      the same source; ``beside``: one is the chunk before or after.
    """
    question = _text_terms("", request.question)
    candidates, relevant = list(request.candidates), list(request.relevant)
    candidate_terms = [_candidate_terms(candidate) for candidate in candidates]
    # A score that is not finite makes features that are not finite, which become 0 at the end.
    with np.errstate(all="ignore"):
        rows = _common_features(question, candidates, candidate_terms, relevant)
    if relevant:
        relevant_texts = _RelevantTexts(question, relevant)
        for row, candidate, terms in zip(rows, candidates, candidate_terms, strict=True):
            row |= relevant_texts.features(candidate, terms)
    names = LATER if relevant else FIRST
    matrix = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    return np.nan_to_num(matrix.reshape(len(candidates), len(names)), posinf=0.0, neginf=0.0)


def _common_features(
    question: _Terms,
    candidates: Sequence[Candidate],
    candidate_terms: Sequence[_Terms],
    relevant: Sequence[Candidate],
) -> list[dict[str, float]]:
    best_score = max((candidate.hit.score for candidate in (*candidates, *relevant)), default=0.0)
    nearness = np.array([candidate.nearness for candidate in candidates], dtype=np.float64)
    z_scores = (nearness - nearness.mean()) / (nearness.std() + 1e-6) if candidates else nearness
    scores = np.array([candidate.hit.score for candidate in candidates], dtype=np.float64)
    exponentials = np.exp((scores - scores.max(initial=-np.inf)) / TEMPERATURE)
    shares = exponentials / exponentials.sum()
    rows = []
    for candidate, terms, z_score, score_share in zip(
        candidates, candidate_terms, z_scores.tolist(), shares.tolist(), strict=True
    ):
        text_cosine, title_cosine = _largest_cosines(candidate.hit.facet_scores)
        rows.append(
            {
                "text_cosine": text_cosine,
                "title_cosine": title_cosine,
                "gap_best": candidate.hit.score - best_score,
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
        self.hit_vectors = [(item.hit, _facet_vectors(item.hit)) for item in relevant]
        self.titles = [terms.title for terms in candidate_terms]
        self.words = frozenset[str]().union(*(terms.words for terms in candidate_terms))
        self.names = frozenset[str]().union(*(terms.names for terms in candidate_terms))
        # Each text has a blank on either side, so that no phrase continues in the next text.
        self.text = " ".join(terms.body for terms in candidate_terms)
        self.new_titles = [title for title in self.titles if not _contains(title, question.body)]

    def features(self, candidate: Candidate, terms: _Terms) -> dict[str, float]:
        question = self.question
        vectors = _facet_vectors(candidate.hit)
        pairs = [_text_and_title_cosine(candidate.hit, vectors, *pair) for pair in self.hit_vectors]
        text_cosine, title_cosine = (max(cosines) for cosines in zip(*pairs, strict=True))
        is_named = not _contains(terms.title, question.body) and _contains(terms.title, self.text)
        new_title_words = terms.title_words - question.words
        named_count = sum(f" {word} " in self.text for word in new_title_words)
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
            "title_words_named": named_count / max(1, len(new_title_words)),
            "names_candidate": float(has_relevant_title),
            "names_shared": shared_count / math.sqrt(max(1, len(new_names))),
            "log_relevant": math.log1p(len(self.relevant)),
            "same_title": float(same_title),
            "same_source": float(any(candidate.same_source(other) for other in self.relevant)),
            "beside": float(any(candidate.beside(other) for other in self.relevant)),
        }


def _text_and_title_cosine(
    hit: Hit, vectors: _VectorByFacet, other_hit: Hit, other_vectors: _VectorByFacet
) -> tuple[float, float]:
    if vectors and vectors.keys() == other_vectors.keys():
        cosines = {name: float(vectors[name] @ other_vectors[name]) for name in vectors}
        return _largest_cosines(cosines)
    first, second = (np.asarray(h.vector, dtype=np.float64).ravel() for h in (hit, other_hit))
    if first.shape != second.shape:
        return 0.0, 0.0
    # The dot product is the sum of the facets' cosines, so it is divided by their number.
    return float(first @ second) / max(1, len(hit.facet_scores)), 0.0


def _facet_vectors(hit: Hit) -> _VectorByFacet:
    """Return the facets' vectors by name; empty if the hit's vector cannot be split.

    A hit does not have the facets' dimensions, so equal dimensions and unit vectors are assumed.
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


def _largest_cosines(cosines: Mapping[str, float]) -> tuple[float, float]:
    """Return the largest cosine of the text facets, and of the title facets (``TITLE_NAMES``).

    If all facets are titles, they count as text. Without a title, the second cosine is 0.
    """
    titles = [name for name in cosines if name in TITLE_NAMES] if len(cosines) > 1 else []
    texts = [value for name, value in cosines.items() if name not in titles]
    if not texts:
        return max(cosines.values(), default=0.0), 0.0
    return max(texts), max((cosines[name] for name in titles), default=0.0)


@lru_cache(maxsize=512)
def _text_terms(title: str, text: str) -> _Terms:
    """Return the terms of a text and its title; a question has an empty title."""
    plain_title = _BRACKETS.sub("", title)
    names = frozenset(
        _phrase(match.group())
        for match in _NAME.finditer(text)
        if len(match.group()) >= MIN_CHARACTERS and match.group().lower() not in STOPWORDS
    )
    words, title_words = _content_words(f"{title} {text}"), _content_words(plain_title)
    return _Terms(_phrase(plain_title), f" {_phrase(text)} ", words, title_words, names)


def _candidate_terms(candidate: Candidate) -> _Terms:
    """Return the terms of a candidate, without the lines that only repeat its title."""
    title = _title(candidate)
    problem = candidate.hit.case.problem
    titles = {title, *(text for name in TITLE_NAMES if isinstance(text := problem.get(name), str))}
    lines = candidate.text.split("\n")
    return _text_terms(title, "\n".join(line for line in lines if line.strip() not in titles))


def _title(candidate: Candidate) -> str:
    case = candidate.hit.case
    for name in TITLE_NAMES:
        for value in (case.problem.get(name), case.metadata.get(name)):
            if isinstance(value, str) and value.strip():
                return value.strip()
    return ""


def _phrase(text: str) -> str:
    """Return a text's words, lower case, joined by blanks."""
    return " ".join(_words(text))


def _contains(phrase: str, body: str) -> bool:
    """Return ``True`` if a ``_Terms.body`` contains a phrase, and the phrase is not short."""
    return len(phrase) >= MIN_CHARACTERS and f" {phrase} " in body


def _share(found: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of ``whole`` that is in ``found``; 0 if ``whole`` is empty."""
    return len(found & whole) / len(whole) if whole else 0.0


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(text) if word not in STOPWORDS)
