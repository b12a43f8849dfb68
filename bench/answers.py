"""Measures answers from numbered evidence: support by the evidence, facts, length and time.

The questions are from HotpotQA, 2WikiMultihopQA and MuSiQue. The evidence is the paragraphs that
support the answer, filled up with other paragraphs of the same question.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from casewright.bench.harness import mean, p50, timed, tracked
from casewright.bench.report import Report
from casewright.bench.result_cache import ResultCache
from casewright.errors import CasewrightError, InputError
from casewright.finetune.judge_sets.paragraphs import CLAIMS, CORPUS, FILES, Item, read_items
from casewright.finetune.records import read_values
from casewright.graph import ChatGenerator, Evidence, GenerationRequest, Generator, groundedness
from casewright.graph.generator import EVIDENCE_ID, checked_citations
from casewright.graph.named import EXTRACTIVE, make_generator
from casewright.planner import Prompt, chat_model
from casewright.planner.decoding import Decoder, DecodingLimits
from casewright.planner.grammar.matcher import PlanMatcher, compile_grammar
from casewright.planner.local_chat import LocalChat, local_chat
from casewright.stores import Encoder
from casewright.stores.documents.quotable import quotables

#: Number of paragraphs in the evidence of a question.
EVIDENCE_COUNT = 4
#: Minimum cosine at which a part of the evidence supports a sentence by meaning.
MIN_COSINE = 0.6
#: Maximum numbers of tokens and of seconds for a chat model's answer.
MAX_TOKENS, MAX_SECONDS = 120, 900.0
#: Suffix of the name of a local model whose answers follow ``CITATION_GRAMMAR``.
GRAMMAR_SUFFIX = "+grammar"
CITATION_GRAMMAR = r"""
start: sentence (" " sentence)?
sentence: TEXT " " cited cited?
cited: "[E1]" | "[E2]" | "[E3]" | "[E4]"
TEXT: /([^\[\]\n.!?]|[.!?][^\[\]\s]){8,240}[.!?]/
"""
NOTES = (
    "quoted: number of answers that quote the evidence, because the model failed or was late. "
    "cited: share of the sentences with a citation. by_words, by_meaning: share of the sentences "
    "that the cited evidence supports; without a citation, any evidence may do so. by_words is the "
    "check that Casewright makes of an answer; by_meaning is a check by the encoder's cosine. "
    "by_meaning_of_those_by_words: by_meaning for the sentences that by_words accepts. "
    "facts: share of the answers that contain the right answer. letters, ms: medians.",
)


class Question(NamedTuple):
    """A question with its evidence; ``answers`` are the right answer and its aliases."""

    request: GenerationRequest
    answers: Sequence[str]

    def is_answered_by(self, text: str) -> bool:
        """Return true if a text contains the right answer or one of its aliases."""
        return any(answer.lower() in text.lower() for answer in self.answers)


def read_questions(data: Path, limit: int) -> list[Question]:
    """Return up to ``limit`` questions, from the files in turn; ``InputError`` for a bad file."""
    files = [data / file for file in FILES.values() if (data / file).is_file()]
    if not files:
        raise InputError(f"{data} has none of {', '.join(FILES.values())}. Give the files' folder.")
    # Questions of yes or no are left out: almost any text contains "no".
    sets = [
        [_question(item) for item in read_items(file) if item.record["answer"] not in ("yes", "no")]
        for file in files
    ]
    return [question for row in zip_longest(*sets) for question in row if question][:limit]


def _question(item: Item) -> Question:
    rng = random.Random(item.record["question"])
    others = sorted(item.paragraphs - item.supporting)
    paragraphs = [*sorted(item.supporting), *rng.sample(others, len(others))][:EVIDENCE_COUNT]
    rng.shuffle(paragraphs)
    evidence = [
        Evidence(f"E{number}", "s1", "search", f"# {title}\n\n{text}", title, {}, final=True)
        for number, (title, text) in enumerate(paragraphs, 1)
    ]
    answers = [item.record["answer"], *item.record.get("answer_aliases", ())]
    return Question(GenerationRequest(item.record["question"], evidence), answers)


class CitingChat(LocalChat):
    """A local model that writes one or two sentences, each with citations of existing evidence."""

    def _call(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> str:
        tokenizer = self.model.grammar_tokenizer
        matcher = PlanMatcher(compile_grammar(tokenizer, CITATION_GRAMMAR), tokenizer)
        prompt = self.model.encode(Prompt(head="", tail="\n\n".join(str(m.text) for m in messages)))
        limits = DecodingLimits(tokens=self.max_tokens)
        written = Decoder(self.model).write(prompt, matcher, limits=limits)
        return str(self.model.decode(written.tokens))


def find_generator(name: str, encoder: Encoder) -> Generator:
    """Return the generator with a name; ``InputError`` if there is none.

    The answers of ``local:smollm2+grammar`` follow ``CITATION_GRAMMAR``.
    """
    if name == EXTRACTIVE:
        return make_generator(name, encoder)
    model_name = name.removesuffix(GRAMMAR_SUFFIX)
    if model_name == name:
        return ChatGenerator(chat_model(name, max_tokens=MAX_TOKENS), seconds=MAX_SECONDS)
    local = local_chat(model_name.removeprefix("local:"))
    return ChatGenerator(
        CitingChat(model=local.model, max_tokens=2 * MAX_TOKENS), seconds=MAX_SECONDS
    )


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

    ``keep`` is the file of a ``ResultCache``. A person may add a list ``supported`` to an answer
    in this file, with true or false for each sentence. ``claims`` is SciFact's folder.
    """
    questions, result_cache = read_questions(data, limit), ResultCache(keep)
    rows: list[dict[str, Any]] = []
    agreement_rows: list[dict[str, Any]] = []
    for name in generators:
        # Cached answers need no generator; the first new answer loads the generator.
        load_generator = cache(partial(find_generator, name, encoder))
        judged = []
        for question in tracked(name, questions):
            key = (name, question.request.question)
            answer = result_cache.get(key, partial(_generate, question, load_generator))
            judged.append((question, answer, _sentence_verdicts(question, answer, encoder)))
        if all("quoted" in answer for _, answer, _ in judged):
            raise CasewrightError(f"No question was answered: {judged[0][1]['quoted']}.")
        rows.append(_row(name, judged))
        agreement_rows += _agreement_rows(name, judged)
    columns = ("by_words", "by_meaning", "facts")
    figures = {f"{row['generator']}.{column}": row[column] for row in rows for column in columns}
    settings = {"data": str(data), "questions": len(questions), "evidence": EVIDENCE_COUNT}
    rows += agreement_rows + ([] if claims is None else measure_claims(claims))
    titles = {"answers": "answers", "read": "sentences that a person has read"}
    titles["claims"] = "the check on SciFact's claims"
    return Report("answers", settings, figures, rows, NOTES, titles=titles)


def measure_claims(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each file of SciFact's claims: the shares that the check by words accepts.

    There is a share for each label of a cited abstract: support, contradict, or none.
    """
    abstract_by_id = {item["doc_id"]: item["abstract"] for *_, item in read_values(folder / CORPUS)}
    rows = []
    for file in sorted(folder.glob(CLAIMS)):
        accepted_by_label: dict[str, list[bool]] = {"SUPPORT": [], "CONTRADICT": [], "NONE": []}
        for *_, item in read_values(file):
            label_by_id = {entry["doc_id"]: entry["label"] for entry in item["evidence"]}
            for cited_id in item["cited_doc_ids"]:
                share = groundedness.adjacent_share(item["claim"], abstract_by_id[cited_id])
                is_accepted = share >= groundedness.MIN_SUPPORT
                accepted_by_label[label_by_id.get(cited_id, "NONE")].append(is_accepted)
        shares = {f"{name.lower()}_kept": mean(v) for name, v in accepted_by_label.items()}
        pair_count = sum(map(len, accepted_by_label.values()))
        rows.append({"table": "claims", "file": file.stem, "pairs": pair_count, **shares})
    return rows


def _generate(question: Question, load_generator: Callable[[], Generator]) -> dict[str, Any]:
    generation, milliseconds = timed(lambda: load_generator().generate(question.request))
    text, _ = checked_citations(generation.text, question.request.evidence)
    answer = {"text": text, "ms": round(milliseconds)}
    # If the model failed, the evidence is quoted, and the generator's name has the reason.
    return answer | ({"quoted": generation.generator} if "failed" in generation.generator else {})


def _sentence_verdicts(
    question: Question, answer: Mapping[str, Any], encoder: Encoder
) -> list[tuple[bool, bool]]:
    """Return for each sentence whether evidence supports it by words, and by meaning."""
    evidence = question.request.evidence
    verdicts = []
    for sentence in groundedness.sentences(answer["text"]):
        cited_ids = EVIDENCE_ID.findall("".join(groundedness.CITATIONS.findall(sentence)))
        texts = [item.text for item in evidence if not cited_ids or item.id in cited_ids]
        quotes = [part.text for text in texts for part in quotables(text)]
        vectors = encoder.embed([groundedness.CITATIONS.sub("", sentence), *quotes])
        by_meaning = float((vectors[1:] @ vectors[0]).max()) >= MIN_COSINE
        verdicts.append((groundedness.is_supported(sentence, evidence), by_meaning))
    return verdicts


def _row(name: str, judged: Sequence[tuple[Question, Mapping[str, Any], Any]]) -> dict[str, Any]:
    texts = [answer["text"] for _, answer, _ in judged]
    verdicts = [verdict for *_, answer_verdicts in judged for verdict in answer_verdicts]
    sentences = [sentence for text in texts for sentence in groundedness.sentences(text)]
    return {
        "table": "answers",
        "generator": name,
        "answers": len(texts),
        "quoted": sum("quoted" in answer for _, answer, _ in judged),
        "sentences": len(verdicts),
        "cited": mean([bool(groundedness.CITATIONS.search(s)) for s in sentences]),
        "by_words": mean([by_words for by_words, _ in verdicts]),
        "by_meaning": mean([by_meaning for _, by_meaning in verdicts]),
        "by_meaning_of_those_by_words": mean([meaning for words, meaning in verdicts if words]),
        "facts": mean([question.is_answered_by(a["text"]) for question, a, _ in judged]),
        "letters": p50([len(text) for text in texts]),
        "ms": p50([answer["ms"] for _, answer, _ in judged]),
    }


def _agreement_rows(
    name: str, judged: Sequence[tuple[Question, Mapping[str, Any], Any]]
) -> Iterator[dict[str, Any]]:
    """Yield a row that compares verdicts with a person's labels, if there are labels."""
    labelled = [
        (label, *verdict)
        for _, answer, verdicts in judged
        for label, verdict in zip(answer.get("supported", ()), verdicts, strict=False)
    ]
    if labelled:
        supported = [verdict for label, *verdict in labelled if label]
        unsupported = [verdict for label, *verdict in labelled if not label]
        yield {
            "table": "read",
            "generator": name,
            "sentences": len(labelled),
            "supported": mean([label for label, *_ in labelled]),
            "by_words_of_supported": mean([by_words for by_words, _ in supported]),
            "by_words_of_others": mean([by_words for by_words, _ in unsupported]),
            "by_meaning_of_supported": mean([by_meaning for _, by_meaning in supported]),
            "by_meaning_of_others": mean([by_meaning for _, by_meaning in unsupported]),
        }
