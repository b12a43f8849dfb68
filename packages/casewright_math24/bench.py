"""MCBR-RAG's experiments on Math-24 (Marom 2024, section 5.1): Table 1 and Table 2.

Table 1 measures if the nearest cases are relevant. A solution is 24 = larger × smaller factor. For
SCO ("solution class"), a case is relevant if case and puzzle have a larger factor in common. For
SCD ("solution class and decomposition"), the pair at the same places of the sorted numbers must
also make this factor. Table 2 has shares of right answers with no context, a general plan, or the
nearest case's plans. A context is right if the nearest case is relevant for SCD. Accuracy is over
all puzzles, faithfulness over those with a right context, negative rejection over the others.

A run has one of the paper's ten splits: 30 test puzzles, and 436 puzzles for training and as cases.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.planner.chat_call import chat_text
from casewright.stores.progress import progress_bar
from casewright_math24.answer import check
from casewright_math24.decomposition import LARGER_FACTORS, PAIRS, Class, attempts, classes
from casewright_math24.latent import LatentNetwork, features
from casewright_math24.latent_training import (
    ContrastSettings,
    train_contrastive_network,
    train_paper_network,
)
from casewright_math24.prompts import CONTEXT_KINDS, ContextKind, chat_attempts, prompt
from casewright_math24.puzzle import Problem, problem_of
from casewright_mcbr.layers import LATENT_SIZE, unit_rows
from casewright_mcbr.ranking import FIGURE_NAMES, KS, FigureArray, ranking_figures

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: The paper's files: the puzzles with their classes, and the test puzzles of each split.
CASES, SPLITS = "cases_466.jsonl", "test_splits_10x30.json"
#: Names of the representations in tables. "By comparison" means a contrastive loss. Its settings
#: are those of ``ContrastSettings``, unless they are "chosen within each run".
FEATURES, PAPER, CONTRASTIVE = "features", "latent, the paper's network", "latent, by comparison"
NESTED = "latent, by comparison, chosen within each run"
SHUFFLED = "control: latent, by comparison, labels shuffled"
RANDOM = "control: random numbers"
#: The vectors are the puzzles' true classes, so this is an upper bound.
SOLVER = "for comparison: a solver's classes, an upper bound"
#: Names of answerers (see ``Answerer``) in Table 2.
REUSE = "reuse, no model"
RANDOM_CASE, OWN_PAIR = "control: a random case's plans", "reuse, the case's own pair alone"
#: The fixed plan for general context: one pair makes 24, and the other pair makes 1.
GENERAL_PLAN: Class = (24, 2, 3)
#: Plans of controls, which ignore the case. For each factor, ``attempts`` tries all six pairs.
CONTROLS: dict[str, Sequence[Class]] = {
    **{f"control: always factor {larger}": ((larger, *PAIRS[0]),) for larger in LARGER_FACTORS},
    "control: factor 6, then 12": ((6, *PAIRS[0]), (12, *PAIRS[0])),
}
#: The settings from which ``--nested`` chooses.
GRID = [ContrastSettings(*settings) for settings in product((0.05, 0.1, 0.2), (0.7, 1.0))]
#: The shares of right answers: over all puzzles, with a right context, and with a wrong context.
SHARES = ("accuracy", "faithfulness", "negative rejection")
#: The paper's names of representations. ``CONTRASTIVE`` is compared with the paper's latent.
_NAMES_IN_PAPER = {FEATURES: "features", PAPER: "latent", CONTRASTIVE: "latent"}
#: The paper's Table 1: figures in the order of ``FIGURE_NAMES``, means over k and ten runs.
TABLE_1 = {
    ("features", "SCO"): (0.719, 0.015, 0.029, 0.726, 0.815),
    ("latent", "SCO"): (0.820, 0.018, 0.034, 0.824, 0.872),
    ("features", "SCD"): (0.454, 0.042, 0.071, 0.465, 0.581),
    ("latent", "SCD"): (0.642, 0.065, 0.109, 0.651, 0.734),
}
#: The paper's Table 2: for each model, the ``SHARES`` with each of ``CONTEXT_KINDS``.
TABLE_2 = {
    "Llama-3-70B": ((0.060, 0.072, 0.029), (0.123, 0.148, 0.057), (0.533, 0.694, 0.159)),
    "Llama-3.1-405B": ((0.340, 0.291, 0.473), (0.300, 0.329, 0.238), (0.613, 0.738, 0.335)),
    "Llama-3.1-70B": ((0.170, 0.160, 0.179), (0.253, 0.296, 0.136), (0.453, 0.562, 0.188)),
    "Llama-3.1-8B": ((0.107, 0.096, 0.124), (0.007, 0.005, 0.010), (0.143, 0.194, 0.028)),
    "Mixtral-8x7B": ((0.073, 0.075, 0.057), (0.040, 0.036, 0.049), (0.147, 0.205, 0.021)),
    "Qwen2-72B": ((0.167, 0.151, 0.194), (0.220, 0.241, 0.163), (0.473, 0.592, 0.182)),
    "DBRX": ((0.020, 0.023, 0.008), (0.040, 0.044, 0.032), (0.150, 0.191, 0.051)),
}

Vectors = NDArray[np.float32]
Classes = frozenset[Class]
Indices = tuple[int, ...]
Labels = tuple[Classes, ...]  # the classes of each training puzzle
#: A function that returns a vector for each puzzle of training and test. Its arguments are the
#: indices of the training puzzles, their labels, and the number of the run.
Represent = Callable[[Indices, Labels, int], Vectors]
#: A function that solves a problem, and returns True for a right answer. Its arguments are the
#: problem, the kind of context, the plans of the nearest case, and the maximum number of attempts.
Answerer = Callable[[Problem, ContextKind, Sequence[Class], int], bool]
#: The kinds of relevance. Each function gets the classes of a puzzle and of a case.
IS_RELEVANT: dict[str, Callable[[Classes, Classes], bool]] = {
    "SCO": lambda puzzle, case: bool({n for n, *_ in puzzle} & {n for n, *_ in case}),
    "SCD": lambda puzzle, case: bool(puzzle & case),
}


@dataclass(frozen=True, slots=True)
class Puzzles:
    """Puzzles with their classes and splits."""

    problems: Sequence[Problem]
    classes: Sequence[Classes]  # the classes of each puzzle
    splits: Mapping[int, Sequence[int]]  # the indices of the test puzzles by run

    def training(self, run: int) -> list[int]:
        """Return the indices of a run's training puzzles, which are also its cases."""
        tests = set(self.splits[run])
        return [index for index in range(len(self.problems)) if index not in tests]

    def nearest(self, represent: Represent, run: int) -> NDArray[np.intp]:
        """Return an array (tests, 5): the indices of each test puzzle's nearest cases by cosine."""
        training = self.training(run)
        labels = tuple(self.classes[index] for index in training)
        units = unit_rows(represent(tuple(training), labels, run).astype(np.float64))
        similarities = units[list(self.splits[run])] @ units[training].T
        order = np.argsort(-similarities, axis=1, kind="stable")[:, : KS[-1]]
        return np.asarray(np.array(training)[order])


def read_puzzles(folder: Path) -> Puzzles:
    """Return a folder's puzzles and splits; raise ``InputError`` for a missing or invalid file."""
    try:
        lines = (folder / CASES).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
        problems = [problem_of(row["problem"]) for row in rows]
        labels = [frozenset((n, i, j) for n, i, j in row["classes"]) for row in rows]
        indices = {problem: index for index, problem in enumerate(problems)}
        splits = json.loads((folder / SPLITS).read_text(encoding="utf-8"))["splits"]
        tests = {run: [indices[problem_of(p)] for p in split] for run, split in enumerate(splits)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} does not hold the puzzles of Math-24 as {CASES} and {SPLITS}: "
            f"{type(error).__name__}. Give the folder that has both."
        ) from error
    return Puzzles(problems, labels, tests)


def measure_math24(
    data: Path, chat: str | None = None, run_count: int = 10, *, nested: bool = False
) -> Report:
    """Measure retrieval and answers on the paper's splits.

    Args:
        data: The folder for ``read_puzzles``.
        chat: The name of a chat model that is also measured.
        run_count: The number of splits to measure, with one run for each.
        nested: True to train also networks whose settings are chosen in each run.
    """
    puzzles = read_puzzles(data)
    runs = range(min(run_count, len(puzzles.splits)))
    answerers: dict[str, Answerer] = {REUSE: plans_solve}
    if chat is not None:
        from casewright.planner import chat_model

        answerers[chat] = chat_answerer(chat_model(chat))
    represent_by_name = representations(puzzles, nested=nested)
    started = time.perf_counter()
    rows = _retrieval_rows(puzzles, represent_by_name, runs)
    seconds = time.perf_counter() - started
    rows += _answer_rows(puzzles, represent_by_name, answerers, runs)
    labelled = zip(puzzles.problems, puzzles.classes, strict=True)
    incomplete_count = sum(bool(classes(problem) - published) for problem, published in labelled)
    return Report(
        bench="math24",
        settings={"runs": len(runs), "puzzles": len(puzzles.problems), "ks": list(KS)},
        figures={
            **_figures(rows),
            "retrieval_seconds": seconds,
            "puzzles_with_more_classes_by_enumeration": float(incomplete_count),
        },
        rows=rows,
        notes=[
            "Table 1: means over k from 1 to 5 where the row has no k. SCO: case and puzzle have a "
            "larger factor in common. SCD: the pair at the same places also makes this factor. A "
            "run's 30 test puzzles are used neither to train nor to choose the learning rate.",
            "Table 2: an answer is checked by exact arithmetic. Before a second attempt (Revise), "
            "a model is told the error of the first. Without a model, the plans of the nearest "
            "case are reused; the general context is the plan 24 × 1 for all puzzles. All pairs "
            "are tried for a plan's factor, so only the factor comes from the case. Retrieval must "
            "therefore beat the controls, which try the same factors for all puzzles.",
            "The settings of the latent by comparison were chosen on the training puzzles of all "
            "runs together; --nested chooses them within each run.",
            "The paper's Table 2 measures chat models that this bench does not include; --chat "
            "measures a model of your choice.",
        ],
        draw=lambda axes: _draw(axes, rows),
        titles={"1": "Table 1: retrieval", "2": "Table 2: answers"},
    )


def representations(puzzles: Puzzles, *, nested: bool = False) -> dict[str, Represent]:
    """Return the representations by name, with cached vectors; ``NESTED`` only if ``nested``."""
    problems = puzzles.problems
    contrastive = latent_representation(train_contrastive_network, problems)

    def tuned_latents(indices: Indices, labels: Labels, run: int) -> Vectors:
        known = [problems[index] for index in indices]
        # A quarter of the training puzzles serve as test puzzles, to choose the settings.
        query_indices = np.random.default_rng(run).permutation(len(known))[: len(known) // 4]
        inner_puzzles = Puzzles(known, labels, {run: query_indices.tolist()})

        def precision(contrast: ContrastSettings) -> float:
            train = partial(train_contrastive_network, contrast=contrast)
            figures = retrieval_figures(inner_puzzles, latent_representation(train, known), [run])
            return float(figures["SCD"][:, FIGURE_NAMES.index("precision")].mean())

        train = partial(train_contrastive_network, contrast=max(GRID, key=precision))
        return latent_representation(train, problems)(indices, labels, run)

    def shuffled_latents(indices: Indices, labels: Labels, run: int) -> Vectors:
        order = np.random.default_rng(run).permutation(len(labels))
        return contrastive(indices, tuple(labels[index] for index in order), run)

    def random_vectors(_indices: Indices, _labels: Labels, run: int) -> Vectors:
        vectors = np.random.default_rng(run).standard_normal((len(problems), LATENT_SIZE))
        return vectors.astype(np.float32)

    all_classes = [(larger, *pair) for larger in LARGER_FACTORS for pair in PAIRS]
    flags = [[float(class_ in row) for class_ in all_classes] for row in puzzles.classes]
    functions: dict[str, Represent] = {
        FEATURES: lambda *_: np.stack([features(problem) for problem in problems]),
        PAPER: latent_representation(train_paper_network, problems),
        CONTRASTIVE: contrastive,
        SHUFFLED: shuffled_latents,
        **({NESTED: tuned_latents} if nested else {}),
        RANDOM: random_vectors,
        SOLVER: lambda *_: np.array(flags, dtype=np.float32),
    }
    return {name: cache(represent) for name, represent in functions.items()}


def latent_representation(
    train: Callable[..., LatentNetwork], problems: Sequence[Problem]
) -> Represent:
    """Return a representation by latents; ``train`` trains a network of latents for each run."""
    return lambda indices, labels, run: train(
        [problems[index] for index in indices], labels, seed=run
    ).vectors(problems)


def retrieval_figures(
    puzzles: Puzzles, represent: Represent, runs: Sequence[int]
) -> dict[str, FigureArray]:
    """Return the figures (k, figure) for SCO and for SCD: means over queries and runs."""
    figures: dict[str, list[FigureArray]] = {name: [] for name in IS_RELEVANT}
    for run in runs:
        nearest = puzzles.nearest(represent, run)
        queries = [puzzles.classes[test] for test in puzzles.splits[run]]
        for relevance, is_relevant in IS_RELEVANT.items():
            relevant = np.array([[is_relevant(q, c) for c in puzzles.classes] for q in queries])
            hits = np.take_along_axis(relevant, nearest, axis=1)
            counts = relevant[:, puzzles.training(run)].sum(axis=1)
            figures[relevance].append(ranking_figures(hits, counts).mean(axis=2))
    return {relevance: np.mean(by_run, axis=0) for relevance, by_run in figures.items()}


def plans_solve(
    problem: Problem,
    context_kind: ContextKind,
    plans: Sequence[Class],
    max_attempts: int,
    *,
    other_pairs: bool = True,
) -> bool:
    """Return True if the plans of a context solve a problem; ``plans`` are the nearest case's."""
    context_plans = {"none": (), "general": (GENERAL_PLAN,), "top": plans}[context_kind]
    expressions = attempts(problem, context_plans, other_pairs=other_pairs)
    return _is_solved(expressions, problem, max_attempts)


def fixed_plans_answerer(fixed: Sequence[Class]) -> Answerer:
    """Return an answerer that tries the same plans for all puzzles, whatever the context."""
    return lambda problem, _kind, _plans, limit: plans_solve(problem, "top", fixed, limit)


def chat_answerer(model: BaseChatModel) -> Answerer:
    """Return an answerer that asks a chat model, and tells the model the error of a wrong answer.

    Replies are cached, since trials with one and with two attempts begin with the same call.
    """
    chat = chat_text(model)
    reply = cache(lambda *messages: chat(messages))
    return lambda problem, context_kind, plans, max_attempts: _is_solved(
        chat_attempts(lambda m: reply(*m), prompt(problem, context_kind, plans), problem),
        problem,
        max_attempts,
    )


def _is_solved(expressions: Iterator[str], problem: Problem, max_attempts: int) -> bool:
    return any(check(expression, problem).right for expression in islice(expressions, max_attempts))


def _retrieval_rows(
    puzzles: Puzzles, represent_by_name: dict[str, Represent], runs: Sequence[int]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with progress_bar("Training and retrieving", len(represent_by_name), show=None) as advance:
        for name, represent in represent_by_name.items():
            for relevance, figures in retrieval_figures(puzzles, represent, runs).items():
                published = TABLE_1.get((_NAMES_IN_PAPER.get(name, ""), relevance))
                figures_by_k: list[tuple[int | None, FigureArray]] = [(None, figures.mean(axis=0))]
                if published:
                    figures_by_k += zip(KS, figures, strict=True)
                for k, values in figures_by_k:
                    row: dict[str, Any] = {"table": "1", "cases by": name, "relevant": relevance}
                    row |= {"k": k, **dict(zip(FIGURE_NAMES, map(float, values), strict=True))}
                    # The paper has only means over k.
                    means = published if published and k is None else (None,) * len(FIGURE_NAMES)
                    in_paper = zip(FIGURE_NAMES, means, strict=True)
                    rows.append(row | {f"paper {figure}": value for figure, value in in_paper})
            advance(1)
    return rows


def _answer_rows(
    puzzles: Puzzles,
    represent_by_name: dict[str, Represent],
    answerers: dict[str, Answerer],
    runs: Sequence[int],
) -> list[dict[str, Any]]:
    latent = represent_by_name[CONTRASTIVE]
    own_pair = partial(plans_solve, other_pairs=False)
    trials: list[tuple[str, Represent, Answerer, ContextKind, int]] = [
        (name, latent, answerer, context_kind, max_attempts)
        for name, answerer in answerers.items()
        for context_kind in CONTEXT_KINDS
        for max_attempts in (1, 2)
    ]
    for name, plans in CONTROLS.items():
        trials.append((name, latent, fixed_plans_answerer(plans), "general", len(plans)))
    for max_attempts in (1, 2):
        trials.append((RANDOM_CASE, represent_by_name[RANDOM], plans_solve, "top", max_attempts))
        trials.append((OWN_PAIR, latent, own_pair, "top", max_attempts))
        if nested := represent_by_name.get(NESTED):
            trials.append((f"{REUSE}, by the {NESTED}", nested, plans_solve, "top", max_attempts))
    names = ("table", "answered by", "context", "attempts", *SHARES)
    own_rows = [
        (name, kind, limit, *right_shares(puzzles, represent, answerer, kind, runs, limit))
        for name, represent, answerer, kind, limit in trials
    ]
    paper_rows = [
        (f"paper: {model}", context_kind, 1, *shares)
        for model, by_kind in TABLE_2.items()
        for context_kind, shares in zip(CONTEXT_KINDS, by_kind, strict=True)
    ]
    return [dict(zip(names, ("2", *row), strict=True)) for row in [*own_rows, *paper_rows]]


def right_shares(
    puzzles: Puzzles,
    represent: Represent,
    answerer: Answerer,
    context_kind: ContextKind,
    runs: Sequence[int],
    max_attempts: int,
) -> tuple[float | None, ...]:
    """Return the ``SHARES``, as means over the runs; a share without puzzles is ``None``.

    ``represent`` returns the vectors by which the nearest case is retrieved.
    """
    shares: list[list[float]] = [[], [], []]  # for each of SHARES, its values by run
    labels = puzzles.classes
    for run in runs:
        verdicts_of_shares: list[list[bool]] = [[], [], []]
        nearest = puzzles.nearest(represent, run)[:, 0]
        for test, case in zip(puzzles.splits[run], nearest, strict=True):
            plans = sorted(labels[case], reverse=True)
            is_right = answerer(puzzles.problems[test], context_kind, plans, max_attempts)
            verdicts_of_shares[0].append(is_right)
            verdicts_of_shares[1 if labels[test] & labels[case] else 2].append(is_right)
        for values, verdicts in zip(shares, verdicts_of_shares, strict=True):
            if verdicts:
                values.append(mean(verdicts))
    return tuple(mean(values) if values else None for values in shares)


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    slugs = {FEATURES: "features", PAPER: "paper_network", CONTRASTIVE: "comparing"}
    figures = {
        f"{row['relevant'].lower()}_{figure.lower()}_{slugs[row['cases by']]}": row[figure]
        for row in rows
        if row["table"] == "1" and row["k"] is None and row["cases by"] in slugs
        for figure in FIGURE_NAMES
    }
    reuse = [row for row in rows if row["table"] == "2" and row["answered by"] == REUSE]
    accuracy = {row["attempts"]: row["accuracy"] for row in reuse if row["context"] == "top"}
    gain = accuracy[2] - accuracy[1]
    return {**figures, "reuse_accuracy": accuracy[1], "revise_gain": gain}


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    for name in (FEATURES, PAPER, CONTRASTIVE):
        line = [r for r in rows if r.get("cases by") == name and r["relevant"] == "SCD" and r["k"]]
        axes.plot([r["k"] for r in line], [r["precision"] for r in line], marker="o", label=name)
    axes.axhline(TABLE_1["latent", "SCD"][0], color="grey", linestyle=":", label="paper's mean")
    axes.set_xlabel("nearest cases, k")
    axes.set_ylabel("SCD precision")
    axes.set_xticks(KS)
    axes.set_ylim(0, 1)
    axes.legend()
