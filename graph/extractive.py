"""A generator without a language model, which quotes the evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np

from casewright.graph.evidence import Evidence
from casewright.graph.generator import Generation, GenerationRequest
from casewright.stores import Encoder
from casewright.stores.documents.quotable import Quotable, cross_encoder_input, quotables
from casewright.stores.encoders.cross_encoder import answer_logits, log_sum
from casewright.stores.feedback.sufficiency import content_words

#: Maximum number of a step's results that are quoted, and of passages if a cross-encoder chooses.
MAX_QUOTES, MAX_ANSWER_QUOTES = 3, 5
#: Maximum characters of a step's first quotation, of its next ones, and of next ones that the
#: cross-encoder chooses. A quotation is the part of a result that is most similar to the question,
#: with adjacent parts. Results that together are shorter than the first number are quoted whole.
FIRST_SIZE, NEXT_SIZE, NEXT_ANSWER_SIZE = 440, 160, 200
#: Without a cross-encoder, a further result is quoted if its score is at least this share of the
#: best result's score.
MIN_SHARE = 0.7
#: Maximum number of results of a step that are read.
MAX_READ_RESULTS = 20
#: Maximum difference, in nats, between the logits of the best and of a quoted passage.
LOGIT_MARGIN = 5.0
#: Weight in a part's score: it multiplies the share of the question's words that the part has.
WORD_WEIGHT = 0.3
#: Deduction from a result's score for each result that the tool returned before it.
RANK_PENALTY = 0.05

#: A passage: its evidence, its parts, and a score for each part.
_ScoredPassage: TypeAlias = tuple[Evidence, list[Quotable], list[float]]
_CITATION_START = re.compile(r"\[(?=\s*E)")


class ExtractiveGenerator:
    """Quotes the evidence of the steps that answer the question, the most relevant part first.

    Args:
        encoder: Ranks the parts of long evidence by similarity to the question; without an encoder,
            the first parts are quoted.
        full: Quote up to three whole results of a step.
        reads_passages: The results are passages of documents; rank them and their parts by the
            encoder's cross-encoder, if it has one.
    """

    name = "extractive"

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        full: bool = False,
        reads_passages: bool = False,
    ) -> None:
        self._encoder = encoder
        self._full, self._reads_passages = full, reads_passages

    def generate(self, request: GenerationRequest) -> Generation:
        """Return quotations with citations; see ``Generator``."""
        quoted = list(self.quotations(request))
        lines = [_cited(text if "\n" in text else f"- {text}", item.id) for item, text in quoted]
        if not request.evidence and not request.missing:
            lines = ["No look-up was needed for this."]
        if request.missing:
            lines.append(("Missing: " if quoted else "") + _uncited(" ".join(request.missing)))
        citations = list(dict.fromkeys(item.id for item, _ in quoted))
        return Generation("\n".join(lines), generator=self.name, citations=citations)

    def quotations(self, request: GenerationRequest) -> Iterator[tuple[Evidence, str]]:
        """Yield each quoted piece of evidence with its quotation."""
        for _, members in groupby(request.evidence, key=lambda item: item.step):
            items = list(members)
            for item in items:
                if not item.final:
                    yield item, f"Looked up: {_uncited(_record_text(item))}"
            for item, text in self._quotes(request, [item for item in items if item.final]):
                yield item, _uncited(text)

    async def agenerate(self, request: GenerationRequest) -> Generation:
        """Return the same as ``generate``, in a thread: the cross-encoder may take a second."""
        return await asyncio.to_thread(self.generate, request)

    def _quotes(
        self, request: GenerationRequest, items: Sequence[Evidence]
    ) -> list[tuple[Evidence, str]]:
        """Return quotations of one step's results."""
        quoted = items[:MAX_QUOTES]
        texts = [_record_text(item) if _has_fields(item) else item.text for item in quoted]
        if self._full:
            return list(zip(quoted, texts, strict=True))
        # Among many passages, one after the first ones may answer the question.
        skips_none = len(quoted) == len(items) or not self._reads_passages
        is_short = skips_none and sum(map(len, texts)) <= FIRST_SIZE
        if is_short or any(map(_has_fields, quoted)):
            return [
                (item, self._record(request, item) if _has_fields(item) else _short_text(text))
                for item, text in zip(quoted, texts, strict=True)
            ]
        return self._passages(request.question, items)

    def _passages(self, question: str, items: Sequence[Evidence]) -> list[tuple[Evidence, str]]:
        """Return the parts of the best passages that answer the question, with adjacent parts."""
        unique: dict[str, Evidence] = {}
        for item in items[:MAX_READ_RESULTS]:
            # The same page may be stored twice.
            unique.setdefault(item.text, item)
        passages = [(item, parts) for item in unique.values() if (parts := quotables(item.text))]
        answering = self._answering_passages(question, passages)
        chosen = answering or self._similar_passages(question, passages)
        max_quotes = MAX_ANSWER_QUOTES if answering else MAX_QUOTES
        next_size = NEXT_ANSWER_SIZE if answering else NEXT_SIZE
        quotations: dict[str, tuple[Evidence, str]] = {}
        for item, parts, scores in chosen:
            if len(quotations) < max_quotes:
                text = _excerpt(parts, scores, next_size if quotations else FIRST_SIZE)
                quotations.setdefault(text, (item, text))
        return [*quotations.values()]

    def _answering_passages(
        self, question: str, passages: Sequence[tuple[Evidence, list[Quotable]]]
    ) -> list[_ScoredPassage]:
        """Return the passages that answer according to the cross-encoder, in the tool's order.

        Without a cross-encoder, the list is empty.
        """
        if not self._reads_passages:
            return []
        inputs = [cross_encoder_input(parts) for _, parts in passages]
        logits = answer_logits(self._encoder, question, inputs)
        if logits is None:
            return []
        scored = [
            (item, parts, part_logits.tolist())
            for (item, parts), part_logits in zip(passages, logits, strict=True)
        ]
        sums = [log_sum(part_scores) for _, _, part_scores in scored]
        best = max(sums, default=0.0)
        near_best = [index for index, total in enumerate(sums) if total >= best - LOGIT_MARGIN]
        # The best passage is always quoted.
        others = [index for index in near_best if sums[index] < best][: MAX_ANSWER_QUOTES - 1]
        return [scored[index] for index in near_best if index in others or sums[index] == best]

    def _similar_passages(
        self, question: str, passages: Sequence[tuple[Evidence, list[Quotable]]]
    ) -> list[_ScoredPassage]:
        """Return the passages with the parts most similar to the question, the best first.

        Each later result has a deduction, since the tool knows better which results answer.
        """
        scores = iter(self._scores(question, [part for _, parts in passages for part in parts]))
        scored = [(item, parts, [next(scores) for _ in parts]) for item, parts in passages]
        penalties = {item.id: RANK_PENALTY * rank for rank, (item, _) in enumerate(passages)}
        totals = {item.id: max(part_scores) - penalties[item.id] for item, _, part_scores in scored}
        scored.sort(key=lambda passage: -totals[passage[0].id])
        best = max(totals.values(), default=0.0)
        # If the best score is negative, a share of it would be above it.
        return [p for p in scored if totals[p[0].id] >= min(best, MIN_SHARE * best)]

    def _record(self, request: GenerationRequest, item: Evidence) -> str:
        fields = []
        for name, text in _fields(item):
            parts = quotables(text) if len(text) > FIRST_SIZE else []
            if parts:
                text = _excerpt(parts, self._scores(request.question, parts), FIRST_SIZE)
            fields.append((name, " ".join(text.split())))
        return _joined(fields) or item.text

    def _scores(self, question: str, parts: Sequence[Quotable]) -> list[float]:
        """Return a score for each part by similarity; without an encoder, by the parts' order."""
        if self._encoder is None or not parts:
            return [1.0 - 1e-6 * number for number in range(len(parts))]
        texts = [f"{part.heading}: {part.text}" if part.heading else part.text for part in parts]
        vectors = self._encoder.embed([question, *texts])
        words = content_words(question)
        shared = [len(words & content_words(text)) / max(1, len(words)) for text in texts]
        return [float(score) for score in vectors[1:] @ vectors[0] + WORD_WEIGHT * np.array(shared)]


def _excerpt(parts: Sequence[Quotable], scores: Sequence[float], max_characters: int) -> str:
    """Return the part with the best score, adjacent parts of the same heading, and the heading."""
    first = last = max(range(len(parts)), key=lambda number: scores[number])
    heading, length = parts[first].heading, len(parts[first].text)
    while True:
        neighbours = [
            number
            for number in (first - 1, last + 1)
            if 0 <= number < len(parts)
            and parts[number].heading == heading
            and length + len(parts[number].text) <= max_characters
        ]
        if not neighbours:
            break
        nearest = max(neighbours, key=lambda number: scores[number])
        first, last = min(first, nearest), max(last, nearest)
        length += len(parts[nearest].text)
    text = parts[first].text
    for previous, part in zip(parts[first:last], parts[first + 1 : last + 1], strict=True):
        separator = " " if previous.text[-1:] in ".!?:" else "; "
        text += ("\n" if previous.multiline or part.multiline else separator) + part.text
    if not heading:
        return text
    return f"{heading}:\n{text}" if parts[first].multiline else f"{heading}: {text}"


def _cited(text: str, id_: str) -> str:
    """Return a quotation with its citation at the end of the first line."""
    first, *more = text.split("\n")
    return "\n".join([f"{first} [{id_}]", *more])


def _short_text(text: str) -> str:
    """Return a short text on one line; a list, a table or code keeps its lines and its heading."""
    parts = quotables(text)
    if parts and (parts[0].heading or any(part.multiline for part in parts)):
        return _excerpt(parts, [1.0] * len(parts), len(text))
    return " ".join(text.split())


def _has_fields(item: Evidence) -> bool:
    return len(item.row) - ("source" in item.row) > 1


def _uncited(text: str) -> str:
    """Return a text whose would-be citations begin with a round bracket, not a square one."""
    return _CITATION_START.sub("(", text)


def _record_text(item: Evidence) -> str:
    return _joined(_fields(item)) or item.text


def _fields(item: Evidence) -> list[tuple[str, str]]:
    """Return the readable fields of a result, without ids."""
    return [
        (name, str(value))
        for name, value in item.row.items()
        if name != "source" and not name.endswith("_id") and value is not None
    ]


def _joined(fields: Sequence[tuple[str, str]]) -> str:
    """Return the fields as text, the first one without its name."""
    return "; ".join(
        [text if not number else f"{name} {text}" for number, (name, text) in enumerate(fields)]
    )
