"""Worded answers from numbered evidence: sentences that it supports, facts, length, time.

The questions are of HotpotQA, 2WikiMultihopQA and MuSiQue; the evidence is the paragraphs that
support the answer among others of the same question.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from casewright.bench.harness import mean, p50, timed, tracked
from casewright.bench.kept import KeptResults
from casewright.bench.report import Report
from casewright.errors import CasewrightError, InputError
from casewright.finetune.judge_sets.paragraphs import CLAIMS, CORPUS, FILES, Item, read_items
from casewright.finetune.records import read_values
from casewright.graph import ChatGenerator, Evidence, GenerationRequest, Generator
from casewright.graph.generator import ID, checked_citations
from casewright.graph.groundedness import (
    CITATIONS,
    SUPPORTED,
    adjacent_share,
    is_supported,
    sentences,
)
from casewright.graph.named import EXTRACTIVE, make_generator
from casewright.graph.quotable import quotables
from casewright.planner import chat_model
from casewright.planner.decoding.decoder import Decoder
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.grammar.matcher import PlanMatcher, compile_grammar
from casewright.planner.local_chat import LocalChat, local_chat
from casewright.planner.prompt import Prompt
from casewright.stores import Encoder

#: Pieces of evidence that a question is answered from.
EVIDENCE = 4
#: Least cosine of a sentence with a part of its evidence: the second method.
SAME = 0.6
#: Tokens and seconds of a chat model's answer.
TOKENS, SECONDS = 120, 900.0
#: Ends the name of a local model that writes under the grammar ``CITING``.
GRAMMAR = "+grammar"
CITING = r"""
start: sentence (" " sentence)?
sentence: TEXT " " cited cited?
cited: "[E1]" | "[E2]" | "[E3]" | "[E4]"
TEXT: /([^\[\]\n.!?]|[.!?][^\[\]\s]){8,240}[.!?]/
"""
NOTES = (
    "cited: share of the sentences with a citation; by_words and by_meaning: share that the cited "
    "evidence bears out (a sentence without a citation: any evidence), by the check of answers and "
    "by the cosine of the encoder, which the check does not use. facts: share of the answers with "
    "the right answer's words. letters, ms: medians.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its evidence; ``answers`` are the wordings of the right answer."""

    request: GenerationRequest
    answers: Sequence[str]


def read_questions(data: Path, limit: int) -> list[Question]:
    """Return the first questions of each multi-hop file of a folder, the sets in turn.

    Raises:
        InputError: The folder has none of the files, or one cannot be read.
    """
    files = [data / file for file in FILES.values() if (data / file).is_file()]
    if not files:
        raise InputError(f"{data} has none of {', '.join(FILES.values())}. Give their folder.")
    sets = []
    for file in files:
        items = [item for item in read_items(file) if item.record["answer"] not in ("yes", "no")]
        sets.append([_question(item) for item in items])
    return [question for row in zip_longest(*sets) for question in row if question][:limit]


def _question(item: Item) -> Question:
    draw = random.Random(item.record["question"])
    others = sorted(item.paragraphs - item.supporting)
    chosen = [*sorted(item.supporting), *draw.sample(others, len(others))][:EVIDENCE]
    draw.shuffle(chosen)
    evidence = [
        Evidence(f"E{number}", "s1", "search", f"# {title}\n\n{text}", title, {}, final=True)
        for number, (title, text) in enumerate(chosen, 1)
    ]
    answers = [item.record["answer"], *item.record.get("answer_aliases", ())]
    return Question(GenerationRequest(item.record["question"], evidence), answers)


class CitingChat(LocalChat):
    """A local model that writes one or two sentences, each with citations of evidence there is."""

    def _call(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> str:
        tokenizer = self.model.grammar_tokenizer
        matcher = PlanMatcher(compile_grammar(tokenizer, CITING), tokenizer)
        prompt = self.model.encode(Prompt("", "\n\n".join(str(m.text) for m in messages)))
        limits = DecodingLimits(tokens=self.tokens)
        written = Decoder(self.model).write(prompt, matcher, limits=limits)
        return str(self.model.decode(written.tokens))


def find_generator(name: str, encoder: Encoder) -> Generator:
    """Return the generator of a name; ``local:smollm2+grammar`` writes its citations by a grammar.

    Raises:
        InputError: There is no such generator.
    """
    if name == EXTRACTIVE:
        return make_generator(name, encoder)
    bare = name.removesuffix(GRAMMAR)
    if bare == name:
        return ChatGenerator(chat_model(name, max_tokens=TOKENS), seconds=SECONDS)
    local = local_chat(bare.removeprefix("local:"))
    model = CitingChat(model=local.model, tokens=2 * TOKENS)
    return ChatGenerator(model, seconds=SECONDS)


def measure_answers(
    data: Path,
    encoder: Encoder,
    generators: Sequence[str],
    limit: int,
    *,
    keep: Path | None = None,
    claims: Path | None = None,
) -> Report:
    """Answer the same questions with each generator.

    A person may add ``supported`` to the answers in the file ``keep`` (see ``KeptResults``): a list
    of true and false, one a sentence. ``claims`` is SciFact's folder.
    """
    questions, kept = read_questions(data, limit), KeptResults(keep)
    rows: list[dict[str, Any]] = []
    read: list[dict[str, Any] | None] = []
    for name in generators:
        find = cache(partial(find_generator, name, encoder))
        answers = [
            (
                question,
                kept.get((name, question.request.question), partial(_answer, question, find)),
            )
            for question in tracked(name, questions)
        ]
        judged = [(*pair, _judged(*pair, encoder)) for pair in answers]
        rows.append(_row(name, judged))
        read.append(_agreement(name, judged))
    figures = {
        f"{row['generator']}.{figure}": row[figure]
        for row in rows
        for figure in ("by_words", "by_meaning", "facts")
    }
    settings = {"data": str(data), "questions": len(questions), "evidence": EVIDENCE}
    rows += [row for row in read if row] + ([] if claims is None else measure_claims(claims))
    titles = {
        "answers": "answers",
        "read": "sentences that a person has read",
        "claims": "the check on SciFact's claims",
    }
    return Report("answers", settings, figures, rows, NOTES, titles=titles)


def measure_claims(folder: Path) -> list[dict[str, Any]]:
    """Return for each half of SciFact's claims what the check keeps, by the label of the abstract.

    An abstract that a claim cites supports it, contradicts it, or says nothing of it.
    """
    abstracts = {item["doc_id"]: item["abstract"] for _, _, item in read_values(folder / CORPUS)}
    rows = []
    for file in sorted(folder.glob(CLAIMS)):
        kept: dict[str, list[bool]] = {"SUPPORT": [], "CONTRADICT": [], "NONE": []}
        for _, _, item in read_values(file):
            labels = {one["doc_id"]: one["label"] for one in item["evidence"]}
            for cited in item["cited_doc_ids"]:
                share = adjacent_share(item["claim"], abstracts[cited])
                kept[labels.get(cited, "NONE")].append(share >= SUPPORTED)
        counts = {f"{label.lower()}_kept": mean(values) for label, values in kept.items()}
        pairs = sum(map(len, kept.values()))
        rows.append({"table": "claims", "file": file.stem, "pairs": pairs, **counts})
    return rows


def _answer(question: Question, find: Callable[[], Generator]) -> dict[str, Any]:
    generation, milliseconds = timed(lambda: find().generate(question.request))
    if "failed" in generation.generator:
        raise CasewrightError(f"A question was not answered: {generation.generator}.")
    text, _ = checked_citations(generation.text, question.request.evidence)
    return {"text": text, "ms": round(milliseconds)}


def _judged(
    question: Question, answer: Mapping[str, Any], encoder: Encoder
) -> list[tuple[bool, bool]]:
    """Return for each sentence whether its evidence bears it out, by words and by meaning."""
    evidence = question.request.evidence
    judged = []
    for sentence in sentences(answer["text"]):
        cited = ID.findall("".join(CITATIONS.findall(sentence)))
        parts = [
            part.text
            for item in evidence
            if not cited or item.id in cited
            for part in quotables(item.text)
        ]
        vectors = encoder.embed([CITATIONS.sub("", sentence), *parts])
        meant = float((vectors[1:] @ vectors[0]).max()) >= SAME
        judged.append((is_supported(sentence, evidence), meant))
    return judged


def _row(name: str, judged: Sequence[tuple[Question, Mapping[str, Any], Any]]) -> dict[str, Any]:
    texts = [answer["text"] for _, answer, _ in judged]
    pairs = [pair for *_, its in judged for pair in its]
    lines = [line for text in texts for line in sentences(text)]
    return {
        "table": "answers",
        "generator": name,
        "answers": len(texts),
        "sentences": len(pairs),
        "cited": mean([bool(CITATIONS.search(line)) for line in lines]),
        "by_words": mean([words for words, _ in pairs]),
        "by_meaning": mean([meaning for _, meaning in pairs]),
        "by_meaning_of_those_by_words": mean([meaning for words, meaning in pairs if words]),
        "facts": mean(
            [
                any(a.lower() in t.lower() for a in q.answers)
                for (q, *_), t in zip(judged, texts, strict=True)
            ]
        ),
        "letters": p50([len(text) for text in texts]),
        "ms": p50([answer["ms"] for _, answer, _ in judged]),
    }


def _agreement(
    name: str, judged: Sequence[tuple[Question, Mapping[str, Any], Any]]
) -> dict[str, Any] | None:
    """Return what the two methods make of the sentences that a person has read, if any."""
    read = [
        (label, *pair)
        for _, answer, its in judged
        for label, pair in zip(answer.get("supported", ()), its, strict=False)
    ]
    if not read:
        return None
    return {
        "table": "read",
        "generator": name,
        "sentences": len(read),
        "supported": mean([label for label, *_ in read]),
        "by_words_of_supported": mean([words for label, words, _ in read if label]),
        "by_words_of_others": mean([words for label, words, _ in read if not label]),
        "by_meaning_of_supported": mean([meant for label, _, meant in read if label]),
        "by_meaning_of_others": mean([meant for label, _, meant in read if not label]),
    }
