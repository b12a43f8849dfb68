"""Table 4 of MCBR-RAG (section 5.2): analyses without context, and with three cases as context.

The paper compares the words of an answer with those of a reference (here, the engine's analysis).
An answer with similar words may advise a wrong play, so this table also has the share of legal
plays and the equity loss of the advised plays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright.errors import InputError
from casewright.planner.chat_call import Chat
from casewright.stores import Encoder
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import progress_bar
from casewright_backgammon.analysis import BEST_PLAY, analysis_text, best_play_of
from casewright_backgammon.analysis_check import analysis_flaws
from casewright_backgammon.answerer import most_similar_plays
from casewright_backgammon.bench_retrieval import MeasuredSplit, Representation, nearest_cases
from casewright_backgammon.cases import case_text, decision_case
from casewright_backgammon.decision import Decision
from casewright_backgammon.judge import NetworkJudge
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import legal_plays
from casewright_backgammon.play_text import legal_play
from casewright_backgammon.prompts import ROLE, prompt
from casewright_mcbr.layers import unit_rows

if TYPE_CHECKING:
    from torch import Tensor

#: Number of cases in a context.
CASE_COUNT = 3
#: Names of the contexts: no cases, the query's nearest cases, the nearest cases of another query.
NO_CONTEXT, NEAREST, OTHERS = "none", "three cases", "control: three cases of other decisions"
#: Columns of the paper's Table 4, without its average of the three cosines.
PAPER_COLUMNS = ("BERTScore", "cosine, MPNet", "cosine, RoBERTa", "cosine, MiniLM-L12")
#: Two rows of the paper's Table 4 for each model, without cases and with three cases. The figures
#: are in the order of ``PAPER_COLUMNS``; the paper computes BERTScore with roberta-large.
TABLE_4 = {
    "Llama-3.1-405B": ((0.839, 0.604, 0.639, 0.583), (0.833, 0.618, 0.651, 0.603)),
    "Qwen2-72B": ((0.839, 0.580, 0.623, 0.555), (0.841, 0.589, 0.635, 0.567)),
    "Llama-3.1-70B": ((0.840, 0.583, 0.615, 0.552), (0.841, 0.632, 0.665, 0.617)),
    "Llama-3-70B": ((0.838, 0.572, 0.592, 0.544), (0.841, 0.627, 0.658, 0.613)),
    "Mixtral-8x7B": ((0.830, 0.583, 0.624, 0.569), (0.830, 0.602, 0.641, 0.596)),
    "Llama-3.1-8B": ((0.833, 0.570, 0.607, 0.551), (0.815, 0.614, 0.650, 0.598)),
}
#: Number of texts in a batch of MiniLM, and number of tokens after which a text is cut off.
BATCH_SIZE, MAX_TOKENS = 32, 256


@dataclass(frozen=True, slots=True)
class Answerer:
    """A method of writing the analysis of a decision."""

    name: str  # the name in the table
    #: Returns the analysis of a decision, given cases (the nearest first) or no cases.
    answer: Callable[[Decision, Sequence[Decision]], str]
    contexts: Sequence[str] = (NO_CONTEXT, NEAREST, OTHERS)  # the contexts to measure


def answer_rows(
    data: MeasuredSplit,
    representation: Representation,
    answerers: Sequence[Answerer],
    encoders: dict[str, Encoder],
    limit: int,
) -> list[dict[str, Any]]:
    """Return a row for each answerer and context, and the paper's rows.

    Args:
        representation: Its position vectors give the nearest of the cases with the query's roll.
        encoders: Encoders for the cosine of whole texts, by name.
        limit: Maximum number of queries; they are evenly spaced in the split.
    """
    split = data.split
    indices = sorted(set(np.linspace(0, len(split.queries) - 1, limit).astype(int).tolist()))
    queries = [split.queries[index] for index in indices]
    vectors, case_vectors = map(representation.position_vectors, (split.queries, split.cases))
    nearest = nearest_cases(data, vectors, case_vectors, CASE_COUNT, same_roll=True)[indices]
    # In the control, each query gets the cases of another query, which mostly has another roll.
    other_cases = np.roll(nearest, len(nearest) // 2, axis=0)
    contexts = {NO_CONTEXT: nearest[:, :0], NEAREST: nearest, OTHERS: other_cases}
    rows = []
    total = sum(len(answerer.contexts) for answerer in answerers)
    with progress_bar("Answering", total) as advance:
        for answerer in answerers:
            for context in answerer.contexts:
                case_lists = [[split.cases[i] for i in row] for row in contexts[context]]
                answers = list(map(answerer.answer, queries, case_lists))
                figures = _figures(queries, answers, encoders)
                rows.append(_row(answerer.name, context, figures))
                advance(1)
    return rows + [
        _row(f"paper: {model}", context, dict(zip(PAPER_COLUMNS, figures, strict=True)))
        for model, paper_rows in TABLE_4.items()
        for context, figures in zip((NO_CONTEXT, NEAREST), paper_rows, strict=True)
    ]


def _row(name: str, context: str, figures: dict[str, Any]) -> dict[str, Any]:
    return {"table": "4", "answered by": name, "context": context, **figures}


def reuse_answerer(network: PositionNetwork) -> Answerer:
    """Return the answerer that reuses the best play and the text of the nearest case.

    If there are no cases, the answer advises the alphabetically first legal play.
    """

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        plays = legal_plays(query.position, query.dice)
        if not cases:
            first = min(plays, key=lambda play: play.text)
            return f"This play is legal with the roll. {BEST_PLAY} {first.text}."
        play = most_similar_plays(plays, cases[:1], network)[0]
        reasons = analysis_text(cases[0]).rpartition(BEST_PLAY)[0]
        return f"{reasons}{BEST_PLAY} {play.text}."

    return Answerer("reuse, no model", answer)


def network_answerer(network: PositionNetwork) -> Answerer:
    """Return the answerer that writes analyses from the network's equities, without cases."""
    judge = NetworkJudge(network)

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        return analysis_text(judge.analyse(query.position, query.dice, None, ()))

    return Answerer("the network's own analysis", answer, (NO_CONTEXT,))


def chat_answerer(name: str, chat: Chat) -> Answerer:
    """Return the answerer that calls a chat model once for each decision."""

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        texts = [case_text(decision_case(case)) for case in cases]
        return chat([("system", ROLE), ("user", prompt(query.position, query.dice, None, texts))])

    return Answerer(name, answer)


def _figures(
    queries: Sequence[Decision], answers: Sequence[str], encoders: dict[str, Encoder]
) -> dict[str, Any]:
    """Return the text measures of answers, and the measures of the plays that they advise."""
    references = [analysis_text(query) for query in queries]
    advised = list(map(_equity_loss, queries, answers))
    legal_losses = [loss for loss, _ in advised if loss is not None]
    return {
        **dict.fromkeys(PAPER_COLUMNS),
        "BERTScore": mean(bert_scores(answers, references)),
        **{
            f"cosine, {name}": _cosine(encoder, answers, references)
            for name, encoder in encoders.items()
        },
        "legal play": len(legal_losses) / len(queries),
        "listed": mean([is_listed for _, is_listed in advised]),
        "lost, at least": mean(legal_losses) if legal_losses else None,
        "best play": mean([is_listed and loss == 0 for loss, is_listed in advised]),
        "retained": mean([not flaws for flaws in map(analysis_flaws, answers, queries)]),
    }


def _equity_loss(query: Decision, text: str) -> tuple[float | None, bool]:
    """Return the equity loss of the advised play, and True if the engine lists the play.

    The loss is ``None`` if the text advises no legal play. A legal play that is not listed gets the
    loss of the worst listed play; its real loss is at least as high.
    """
    play = best_play_of(text)
    if play is None:
        return None, False
    try:
        after = legal_play(query.position, query.dice, play).after
    except InputError:
        return None, False
    for rank in range(len(query.candidates)):
        if query.after(rank) == after:
            return query.equity_loss(rank), True
    return query.equity_loss(len(query.candidates) - 1), False


def _cosine(encoder: Encoder, answers: Sequence[str], references: Sequence[str]) -> float:
    """Return the mean cosine of the answers with their references."""
    answer_vectors = unit_rows(np.asarray(encoder.embed(list(answers))))
    reference_vectors = unit_rows(np.asarray(encoder.embed(list(references))))
    return mean((answer_vectors * reference_vectors).sum(axis=1))


def bert_scores(answers: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """Return the BERTScore F1 of n answers against their references, array (n).

    Each token is compared with the nearest token of the other text (Zhang et al. 2020, section 3),
    without inverse document frequency or rescaling, so a score is from -1 to 1. The packaged MiniLM
    embeds the tokens. The paper used a larger model, so its scores are not comparable with these.
    """
    scores = []
    for answer, reference in zip(_token_vectors(answers), _token_vectors(references), strict=True):
        if not len(answer) or not len(reference):
            scores.append(0.0)
            continue
        similarities = answer @ reference.T
        precision, recall = similarities.max(axis=1).mean(), similarities.max(axis=0).mean()
        total = precision + recall
        scores.append(2 * precision * recall / total if total > 0 else 0.0)
    return np.array(scores)


def _token_vectors(texts: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return for each text the unit vectors of its tokens, array (tokens, units)."""
    import torch

    tokenizer, model = _minilm()
    options = {"padding": True, "truncation": True, "max_length": MAX_TOKENS}
    token_vectors: list[NDArray[np.float64]] = []
    for start in range(0, len(texts), BATCH_SIZE):
        batch = tokenizer(list(texts[start : start + BATCH_SIZE]), return_tensors="pt", **options)
        with torch.inference_mode():
            hidden: Tensor = model(**batch).last_hidden_state
        vectors = torch.nn.functional.normalize(hidden, dim=2).numpy().astype(np.float64)
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        # The first and the last token are special tokens, and are left out.
        token_vectors += [row[1 : end - 1] for row, end in zip(vectors, lengths, strict=True)]
    return token_vectors


@cache
def _minilm() -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    folder = packaged_minilm()
    with quiet():
        return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
