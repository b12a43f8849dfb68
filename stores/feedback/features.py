"""Features of a candidate for the relevance judge without a language model.

Nothing is encoded or searched anew: vectors, scores and texts are those of the hits. A candidate's
features depend on the other candidates by their scores only, never by their texts, so that no text
has a say in the verdict on its neighbours. The texts found relevant before are read, as they are
what a candidate is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.stores.feedback.candidate import Candidate
from casewright.stores.feedback.judge import JudgeRequest
from casewright.stores.feedback.likeness import Likeness, facet_cosines
from casewright.stores.feedback.reading import (
    Reading,
    phrase,
    read,
    read_candidate,
    share,
    stands,
)

#: Known of a candidate in every round.
ALWAYS = (
    "text_cosine",
    "title_cosine",
    "gap_best",
    "log_rank",
    "z_score",
    "words_in_text",
    "words_in_title",
    "title_whole",
    "title_in_question",
    "source_named",
)
#: Known while nothing relevant is: the first round.
FIRST = (*ALWAYS, "score_share")
#: Known once something relevant is.
LATER = (
    *ALWAYS,
    "new_words",
    "covered",
    "text_like",
    "title_like",
    "title_named",
    "title_words_named",
    "names_candidate",
    "names_shared",
    "log_relevant",
    "same_title",
    "same_source",
    "beside",
)
#: Temperature of the softmax in ``score_share``, in units of the score.
TEMPERATURE = 0.05


def feature_rows(request: JudgeRequest) -> NDArray[np.float64]:
    """Return one row a candidate: array (n, len(LATER)), or (n, len(FIRST)) in a first round.

    Of the question:

    - ``text_cosine``, ``title_cosine``: the facets' cosines with the question; that of the title
      is 0 without one, and of several others the largest counts.
    - ``gap_best``: the score less the best score of all that the request shows.
    - ``log_rank``: log2(1 + place) by what found it. ``z_score``: the same in standard deviations
      of its round, so that it does not matter in what units a search scores.
    - ``score_share``: softmax of the scores at ``TEMPERATURE``.
    - ``words_in_text``, ``words_in_title``: share of the question's content words in title and
      text, and in the title. ``title_in_question``: share of the title's in the question.
      ``title_whole``: the whole title stands in the question; ``source_named``: its source does.

    Of what is relevant already:

    - ``covered``: share of the question's words that it has; ``new_words``: share of the others
      that the candidate has.
    - ``text_like``, ``title_like``: the largest cosine of text to text, and title to title.
    - ``title_named``: the title stands in a relevant text and not in the question;
      ``title_words_named``: share of the title's words, those of the question left out, that do.
    - ``names_candidate``: a relevant title, not in the question, stands in the candidate.
      ``names_shared``: capitalised names, not in the question, that both have, over the root of
      how many the candidate has.
    - ``log_relevant``: log(1 + how many are relevant).
    - ``same_title``, ``same_source``, ``beside``: one that is relevant has the same title and
      source, the same source, the place before or after in it.
    """
    question = read("", request.question)
    batch, relevant = list(request.candidates), list(request.relevant)
    readings = [read_candidate(one) for one in batch]
    # Scores of a store are finite; of those that are not, nothing is known.
    with np.errstate(all="ignore"):
        rows = _always(question, batch, readings, relevant)
        shares = [] if relevant else _score_shares(batch)
    names: tuple[str, ...] = FIRST
    if relevant:
        names = LATER
        beside_them = _Relevant(question, relevant)
        for row, one, reading in zip(rows, batch, readings, strict=True):
            row |= beside_them.features(one, reading)
    else:
        for row, part in zip(rows, shares, strict=True):
            row["score_share"] = part
    made = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    return np.nan_to_num(made.reshape(len(batch), len(names)), posinf=0.0, neginf=0.0)


def _always(
    question: Reading,
    batch: Sequence[Candidate],
    readings: Sequence[Reading],
    relevant: Sequence[Candidate],
) -> list[dict[str, float]]:
    best = max((one.hit.score for one in (*batch, *relevant)), default=0.0)
    found = np.array([one.nearness for one in batch], dtype=np.float64)
    spread = (found - found.mean()) / (found.std() + 1e-6) if batch else found
    rows = []
    for one, reading, z in zip(batch, readings, spread.tolist(), strict=True):
        text, title = facet_cosines(one.hit)
        rows.append(
            {
                "text_cosine": text,
                "title_cosine": title,
                "gap_best": one.hit.score - best,
                "log_rank": math.log2(1 + int((found > one.nearness).sum())),
                "z_score": z,
                "words_in_text": share(reading.words, question.words),
                "words_in_title": share(reading.title_words, question.words),
                "title_whole": float(stands(reading.title, question.body)),
                "title_in_question": share(question.words, reading.title_words),
                "source_named": float(stands(phrase(one.source[1]), question.body)),
            }
        )
    return rows


def _score_shares(batch: Sequence[Candidate]) -> list[float]:
    scores = np.array([one.hit.score for one in batch], dtype=np.float64)
    # Less the largest, so that no exponential overflows.
    parts = np.exp((scores - scores.max(initial=-np.inf)) / TEMPERATURE)
    shares: list[float] = (parts / parts.sum()).tolist()
    return shares


class _Relevant:
    """The relevant candidates, to compare others with."""

    def __init__(self, question: Reading, relevant: Sequence[Candidate]) -> None:
        readings = [read_candidate(one) for one in relevant]
        self.question = question
        self.relevant = relevant
        self.likeness = Likeness([one.hit for one in relevant])
        self.titles = [reading.title for reading in readings]
        self.covered = frozenset[str]().union(*(reading.words for reading in readings))
        self.names = frozenset[str]().union(*(reading.names for reading in readings))
        # The blanks between two texts are two: no phrase reaches over their border.
        self.text = " ".join(reading.body for reading in readings)
        self.known = [title for title in self.titles if not stands(title, question.body)]

    def features(self, one: Candidate, reading: Reading) -> dict[str, float]:
        question = self.question
        text, title = self.likeness.to(one.hit)
        named = not stands(reading.title, question.body) and stands(reading.title, self.text)
        rest = reading.title_words - question.words
        own = [name for name in reading.names if f" {name} " not in question.body]
        same = any(
            reading.title
            and reading.title == known
            and (one.same_source(other) or not (one.source[1] or other.source[1]))
            for known, other in zip(self.titles, self.relevant, strict=True)
        )
        return {
            "new_words": share(reading.words, question.words - self.covered),
            "covered": share(self.covered, question.words),
            "text_like": text,
            "title_like": title,
            "title_named": float(named),
            "title_words_named": sum(f" {w} " in self.text for w in rest) / max(1, len(rest)),
            "names_candidate": float(any(stands(title, reading.body) for title in self.known)),
            "names_shared": sum(name in self.names for name in own) / math.sqrt(max(1, len(own))),
            "log_relevant": math.log1p(len(self.relevant)),
            "same_title": float(same),
            "same_source": float(any(one.same_source(other) for other in self.relevant)),
            "beside": float(any(one.beside(other) for other in self.relevant)),
        }
