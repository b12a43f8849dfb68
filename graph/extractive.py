"""A generator without a language model, which quotes the evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TypeAlias

import numpy as np

from casewright.graph.evidence import Evidence
from casewright.graph.generator import Generation, GenerationRequest
from casewright.stores import Encoder
from casewright.stores.documents.quotable import Quotable, cross_encoder_input, quotables
from casewright.stores.encoders.cross_encoder import answer_logits, log_sum
from casewright.stores.feedback.sufficiency import content_words

#: Maximum number of a step's quotations, without and with a cross-encoder that chooses them.
MAX_QUOTES, MAX_ANSWER_QUOTES = 3, 5
#: Maximum characters of a step's first quotation, of a later quotation, and of a later quotation
#: that the cross-encoder chooses. A quotation is the part of a result that is most similar to the
#: question, with adjacent parts. Results that fit together into ``FIRST_SIZE`` are quoted whole.
FIRST_SIZE, NEXT_SIZE, NEXT_ANSWER_SIZE = 440, 160, 200
#: Without a cross-encoder, a further result is quoted if its score is at least this share of the
#: best result's score.
MIN_SHARE = 0.7
#: Maximum number of results of a step that are read.
MAX_READ_RESULTS = 20
#: Maximum difference, in nats, between the logits of the best and of a quoted passage.
LOGIT_MARGIN = 5.0
#: Weight, in a part's score, of the share of the question's words that the part has.
WORD_WEIGHT = 0.3
#: Deduction from a result's score for each result that the tool returned before it.
RANK_PENALTY = 0.05

#: A passage: its evidence, its parts, and a score for each part.
_ScoredPassage: TypeAlias = tuple[Evidence, list[Quotable], list[float]]
_CITATION_START = re.compile(r"\[(?=\s*E)")


class ExtractiveGenerator:
    """Quotes the most relevant parts of the evidence, from the steps that answer the question.

    Args:
        encoder: Ranks the parts of long evidence by similarity to the question; without an encoder,
            the first parts are quoted.
        full: True to quote whole results, at most three of a step.
        reads_passages: True if the results are passages of documents. The encoder's cross-encoder,
            if there is one, then ranks the passages and their parts.
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
        first_items = items[:MAX_QUOTES]
        texts = [_record_text(item) if _is_record(item) else item.text for item in first_items]
        if self._full:
            return list(zip(first_items, texts, strict=True))
        # A passage after the first ones may answer the question, so no passage may be left out.
        may_quote_first = len(first_items) == len(items) or not self._reads_passages
        is_short = may_quote_first and sum(map(len, texts)) <= FIRST_SIZE
        if is_short or any(map(_is_record, first_items)):
            return [
                (item, self._cut_record(request, item) if _is_record(item) else _short_text(text))
                for item, text in zip(first_items, texts, strict=True)
            ]
        return self._passages(request.question, items)

    def _passages(self, question: str, items: Sequence[Evidence]) -> list[tuple[Evidence, str]]:
        """Return a quotation of each of the best passages: the best part, with adjacent parts."""
        unique: dict[str, Evidence] = {}
        for item in items[:MAX_READ_RESULTS]:
            # The same page may be stored twice.
            unique.setdefault(item.text, item)
        passages = [(item, parts) for item in unique.values() if (parts := quotables(item.text))]
        answering = self._answering_passages(question, passages)
        chosen = answering or self._similar_passages(question, passages)
        max_quotes = MAX_ANSWER_QUOTES if answering else MAX_QUOTES
        next_size = NEXT_ANSWER_SIZE if answering else NEXT_SIZE
        quotations: dict[str, tuple[Evidence, str]] = {}  # by text, so that none occurs twice
        for item, parts, scores in chosen:
            if len(quotations) < max_quotes:
                text = _excerpt(parts, scores, next_size if quotations else FIRST_SIZE)
                quotations.setdefault(text, (item, text))
        return [*quotations.values()]

    def _answering_passages(
        self, question: str, passages: Sequence[tuple[Evidence, list[Quotable]]]
    ) -> list[_ScoredPassage]:
        """Return the passages with the cross-encoder's highest logits, in the tool's order.

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
        totals = [log_sum(part_scores) for _, _, part_scores in scored]
        best = max(totals, default=0.0)
        near_best = [index for index, total in enumerate(totals) if total >= best - LOGIT_MARGIN]
        # The best passage is always quoted.
        others = [index for index in near_best if totals[index] < best][: MAX_ANSWER_QUOTES - 1]
        return [scored[index] for index in near_best if index in others or totals[index] == best]

    def _similar_passages(
        self, question: str, passages: Sequence[tuple[Evidence, list[Quotable]]]
    ) -> list[_ScoredPassage]:
        """Return the passages with the parts most similar to the question, the best first.

        Later results have a deduction, since the tool's order tells more than a similarity.
        """
        scores = iter(self._scores(question, [part for _, parts in passages for part in parts]))
        scored = [(item, parts, [next(scores) for _ in parts]) for item, parts in passages]
        penalties = {item.id: RANK_PENALTY * rank for rank, (item, _) in enumerate(passages)}
        totals = {item.id: max(part_scores) - penalties[item.id] for item, _, part_scores in scored}
        scored.sort(key=lambda passage: -totals[passage[0].id])
        best = max(totals.values(), default=0.0)
        # A share of a negative best score would be above the best score.
        return [p for p in scored if totals[p[0].id] >= min(best, MIN_SHARE * best)]

    def _cut_record(self, request: GenerationRequest, item: Evidence) -> str:
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
        shares = [len(words & content_words(text)) / max(1, len(words)) for text in texts]
        return [float(score) for score in vectors[1:] @ vectors[0] + WORD_WEIGHT * np.array(shares)]


def _excerpt(parts: Sequence[Quotable], scores: Sequence[float], max_characters: int) -> str:
    """Return the best part, adjacent parts of the same heading, and the heading.

    Prose begins with the best part; the parts before it come last, after an ellipsis.
    """
    first = last = best = max(range(len(parts)), key=lambda number: scores[number])
    heading, length = parts[best].heading, len(parts[best].text)
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
        neighbour = max(neighbours, key=lambda number: scores[number])
        first, last = min(first, neighbour), max(last, neighbour)
        length += len(parts[neighbour].text)
    if any(part.multiline for part in parts[first : last + 1]):
        best = first
    text = _sequence(parts[best : last + 1])
    if first < best:
        text += f" … {_sequence(parts[first:best])}"
    if not heading:
        return text
    return f"{heading}:\n{text}" if parts[best].multiline else f"{heading}: {text}"


def _sequence(parts: Sequence[Quotable]) -> str:
    text = parts[0].text
    for previous, part in pairwise(parts):
        separator = " " if previous.text[-1:] in ".!?:" else "; "
        text += ("\n" if previous.multiline or part.multiline else separator) + part.text
    return text


def _cited(text: str, id_: str) -> str:
    """Return a quotation with its citation at the end of the first line."""
    first, *more = text.split("\n")
    return "\n".join([f"{first} [{id_}]", *more])


def _short_text(text: str) -> str:
    """Return a short text on one line; lists, tables, code and headings keep their lines."""
    parts = quotables(text)
    if not any(part.heading or part.multiline for part in parts):
        return " ".join(text.split())
    # Rows of a table repeat its header, so the parts may be longer than the text.
    size = sum(len(part.text) for part in parts)
    sections = [list(section) for _, section in groupby(parts, key=lambda part: part.heading)]
    return "\n".join(_excerpt(section, [1.0] * len(section), size) for section in sections)


def _is_record(item: Evidence) -> bool:
    """Return True if a result has more than one field besides ``source``."""
    return len(item.row) - ("source" in item.row) > 1


def _uncited(text: str) -> str:
    """Return a text with ``(E`` in place of ``[E``, so that evidence cannot imitate a citation."""
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
