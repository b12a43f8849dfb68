"""Relevance feedback beside a single search that judges as many, and beside the post's loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from casewright.bench.feedback.runs import (
    BLIND,
    GOLD,
    OFFLINE,
    POST_KS,
    SHUFFLED,
    BlindJudge,
    GoldJudge,
    K,
    Run,
    ShuffledJudge,
    State,
    SymbolFilter,
    looped,
    post_loop,
    single,
)
from casewright.bench.harness import mean
from casewright.bench.report import Report
from casewright.finetune.judge_data import LabelledQuestion
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.sets import CODE, DESCRIBED, FeedbackSet
from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import CaseStore, Encoder, Question
from casewright.stores.feedback import (
    Judge,
    NeighbourStrategy,
    OfflineJudge,
    RecommendStrategy,
    RocchioStrategy,
    SentenceStrategy,
    Strategy,
    TextStrategy,
)
from casewright.stores.progress import note, progress_bar

#: No bound but these ends a loop here, so that the judges are compared and not the clock.
LIMITS = FeedbackLimits(tokens=1_000_000, seconds=600.0)
JUDGES: Mapping[str, Callable[[LabelledQuestion], Judge]] = {
    GOLD: GoldJudge,
    OFFLINE: lambda question: OfflineJudge(),
    SHUFFLED: ShuffledJudge,
    BLIND: lambda question: BlindJudge(),
}
#: Set to the facet weights that it is searched by, where they are not the schema's own. Those of
#: the code domain are for questions that name a symbol; documents' weights for all others.
NAMED, TOLD = {"text": 0.3, "title": 0.7}, {"text": 0.8, "title": 0.2}
WEIGHTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    CODE: {"": NAMED, ", documents' weights": TOLD},
    DESCRIBED: {"": TOLD},
}
#: Results of one search that are looked at beside.
ALONE = (5, 10, 20, 30, 50)
#: In the plot, one colour a strategy, one stroke a judge.
STROKES = {GOLD: "-", OFFLINE: "--", SHUFFLED: ":", BLIND: "-."}
_NOTES = (
    "Test questions only. The offline judge was trained on as many others of the same sets, over "
    "the same cases: on the other half of each.",
    "first two, unread: the first two cases are taken for relevant, and no judge reads anything. A "
    "judge's gain above that one is what reading adds to searching again.",
    "judged: cases a question; found: share of the relevant among the judged; single: the same for "
    "one search that judges as many; gain: found less single, in points, with its standard error; "
    "answer: share of the relevant that the judge called relevant; precision: of what it called "
    f"relevant; recall@{K}: of what was judged, what was called relevant first.",
    "The post's loop judges all that every round finds, again; tokens are estimated at four "
    "characters each.",
)
#: How many cases were judged, and which share of the relevant was among them, after each round.
Line = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Arm:
    """One strategy with one judge: runs by question, and single searches that judge as many."""

    strategy: str
    judge: str
    runs: Sequence[Run]
    singles: Sequence[State]


@dataclass(frozen=True, slots=True)
class Trial:
    """One set under one weighting of its facets, and all that was tried on its test questions.

    Attributes:
        name: In tables.
        found: The set.
        questions: Of the test half.
        arms: Loops.
        post: The post's loop, by the cases that it fetches a round.
        filtered: What the plain filter finds in code.
        alone: Recall of one search, by its results.
    """

    name: str
    found: FeedbackSet
    questions: Sequence[LabelledQuestion]
    arms: Sequence[Arm]
    post: Mapping[int, Sequence[Run]]
    filtered: Sequence[State]
    alone: Mapping[int, float]

    def mean(
        self, share: Callable[[State, LabelledQuestion], float], states: Sequence[State]
    ) -> float:
        """Return the mean of a share over the questions, each with its state."""
        return mean([share(s, q) for s, q in zip(states, self.questions, strict=True)])

    def gain(self, arm: Arm) -> tuple[float, float]:
        """Return an arm's mean gain over single searches, in points, and its standard error."""
        differences = [
            100 * (run.last.coverage(asked) - alone.coverage(asked))
            for run, alone, asked in zip(arm.runs, arm.singles, self.questions, strict=True)
        ]
        return mean(differences), float(np.std(differences) / np.sqrt(len(differences)))

    def precision(self, states: Sequence[State]) -> float:
        """Return which share of all that was called relevant is."""
        right = sum(len(s.marked & q.relevant) for s, q in zip(states, self.questions, strict=True))
        return right / max(sum(len(state.marked) for state in states), 1)


def measure_feedback(
    data: Path | None, encoder: Encoder, *, only: str | None = None, limit: int | None = None
) -> Report:
    """Measure every strategy with every judge, on questions that the offline judge never saw."""
    note("Reading the questions and the cases of the feedback bench.")
    trials = list(_trials(find_sets(data, only, limit), encoder))
    return Report(
        bench="feedback",
        settings={
            "sets": {one.found.name: {**one.found.size(), **one.found.settings} for one in trials},
            "weights": {f"{s}{n}": dict(w) for s, of in WEIGHTS.items() for n, w in of.items()},
            "encoder": encoder.name,
            "limits": {name: getattr(LIMITS, name) for name in ("first", "more", "rounds")},
        },
        figures={name: value for one in trials for name, value in _figures(one).items()},
        rows=[*map(_summary, trials), *(row for one in trials for row in _rows(one))],
        notes=_NOTES,
        titles={"sets": "feedback: gain in points, default strategy", "all": "feedback: all rows"},
        draw=partial(_draw, panels={one.name: _lines(one) for one in trials}),
    )


def _strategies(found: FeedbackSet) -> tuple[list[Strategy], str]:
    """Return the strategies that a set can be searched by, and the name of the default one."""
    own: list[Strategy] = [
        TextStrategy(),
        SentenceStrategy(),
        RocchioStrategy(),
        RecommendStrategy(),
    ]
    if found.kind == "code":
        own.append(NeighbourStrategy())
    return own, (own[-1] if found.kind == "code" else own[1]).name


def _trials(sets: Sequence[FeedbackSet], encoder: Encoder) -> Iterator[Trial]:
    # Sets of the same cases share a store.
    for _, group in groupby(sets, key=lambda found: id(found.cases)):
        members = list(group)
        note(f"Encoding {len(members[0].cases)} cases of {members[0].name}.")
        with TemporaryDirectory() as folder, members[0].store(encoder, folder) as store:
            for found in members:
                for name, weights in WEIGHTS.get(found.name, {"": None}).items():
                    yield _tried(f"{found.name}{name}", found, store, weights)


def _tried(
    name: str, found: FeedbackSet, store: CaseStore, weights: Mapping[str, float] | None
) -> Trial:
    questions = found.half(training=False)
    strategies, default = _strategies(found)
    tried = [
        (strategy, judge)
        for strategy in strategies
        # The default one has controls beside it.
        for judge in (JUDGES if strategy.name == default else (GOLD, OFFLINE))
    ]

    def asked_of(asked: LabelledQuestion) -> Question:
        question = store.question(asked.text, weights=weights)
        assert question is not None, "the store of a set has cases"
        return question

    note(f"Asking {len(questions)} questions of {name}, with {len(tried)} loops each.")
    arms, alone = [], {k: list[float]() for k in ALONE}
    post: dict[int, list[Run]] = {k: [] for k in POST_KS}
    total = len(questions) * (len(tried) + 1)
    with progress_bar(f"Questions of {name}", total, show=None) as advance:
        for strategy, judging in tried:
            runs, singles = [], []
            for asked in questions:
                judge = JUDGES[judging](asked)
                loop = build_feedback(store, judge, strategy, limits=LIMITS, weights=weights)
                run = looped(FeedbackResult.from_state(loop.invoke({"question": asked.text})))
                runs.append(run)
                singles.append(single(asked_of(asked), judge, len(run.last.judged)))
                advance(1)
            arms.append(Arm(strategy.name, judging, runs, singles))
        for asked in questions:
            question = asked_of(asked)
            ranking = [one.hit.case.id for one in question.best(max(ALONE))]
            for k in ALONE:
                alone[k].append(State(ranking[:k]).coverage(asked))
            for k in POST_KS:
                post[k].append(post_loop(question, asked, k))
            advance(1)
    filtered = []
    if found.kind == "code":
        named = SymbolFilter(found.cases)
        ids = [named.find(asked.text) for asked in questions]
        filtered = [State(own, frozenset(own)) for own in ids]
    shares = {k: mean(values) for k, values in alone.items()}
    return Trial(name, found, questions, arms, post, filtered, shares)


def _summary(trial: Trial) -> dict[str, Any]:
    """Return the row of a set's default strategy: what each judge gains, and what needs none."""
    strategy = _strategies(trial.found)[1]
    gains = {arm.judge: trial.gain(arm) for arm in trial.arms if arm.strategy == strategy}
    return {
        "table": "sets",
        "set": trial.name,
        "default strategy": strategy,
        "questions": len(trial.questions),
        "the judge's training questions": len(trial.found.half(training=True)),
        **{judge: f"{gain:+.1f} ± {error:.1f}" for judge, (gain, error) in gains.items()},
    }


def _rows(trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield the table's rows: one an arm, the post's loop, and for code the plain filter."""

    def shown(values: Sequence[float]) -> str:
        return " ".join(f"{value:.3f}" for value in values)

    for arm in trial.arms:
        lasts = [run.last for run in arm.runs]
        gain, error = trial.gain(arm)
        rounds = [
            [run.after(number) for run in arm.runs]
            for number in range(1, max(len(run.states) for run in arm.runs) + 1)
        ]
        by_round = [trial.mean(State.answer, states) for states in rounds]
        at_k = [trial.mean(State.at_k, states) for states in rounds]
        yield {
            "table": "all",
            "set": trial.name,
            "strategy": arm.strategy,
            "judge": arm.judge,
            "rounds": mean([len(run.states) for run in arm.runs]),
            "judged": mean([len(state.judged) for state in lasts]),
            "found": trial.mean(State.coverage, lasts),
            "single": trial.mean(State.coverage, arm.singles),
            "gain": f"{gain:+.1f} ± {error:.1f}",
            "answer": by_round[-1],
            "single answer": trial.mean(State.answer, arm.singles),
            "precision": trial.precision(lasts),
            f"recall@{K}": at_k[-1],
            f"single recall@{K}": trial.mean(State.at_k, arm.singles),
            "tokens": round(mean([run.tokens for run in arm.runs])),
            "answer by round": shown(by_round),
            f"recall@{K} by round": shown(at_k),
        }
    for k, runs in trial.post.items():
        lasts = [run.last for run in runs]
        yield {
            "table": "all",
            "set": trial.name,
            "strategy": f"the post's loop, {k} a round",
            "judge": GOLD,
            "rounds": mean([len(run.states) for run in runs]),
            "judged": mean([run.judgements for run in runs]),
            "found": trial.mean(State.coverage, lasts),
            "answer": trial.mean(State.answer, lasts),
            f"recall@{K}": trial.mean(State.at_k, lasts),
            "tokens": round(mean([run.tokens for run in runs])),
        }
    if trial.filtered:
        yield {
            "table": "all",
            "set": trial.name,
            "strategy": "plain symbol filter",
            "judge": "none",
            "judged": mean([len(state.judged) for state in trial.filtered]),
            "found": trial.mean(State.coverage, trial.filtered),
            "answer": trial.mean(State.answer, trial.filtered),
            "precision": trial.precision(trial.filtered),
        }


def _figures(trial: Trial) -> dict[str, float]:
    """Return of every arm its gain, the share of the missed that it found, and its cost."""

    def plain(text: str) -> str:
        return "_".join(re.findall(r"\w+", text))

    name = plain(trial.name)
    figures = {f"single_recall_at_{k}_{name}": share for k, share in trial.alone.items()}
    gains = {(arm.strategy, arm.judge): trial.gain(arm)[0] for arm in trial.arms}
    for arm in trial.arms:
        key, gain = plain(f"{name}_{arm.strategy}_{arm.judge}"), gains[arm.strategy, arm.judge]
        figures[f"gain_points_{key}"] = gain
        missed = 1 - trial.mean(State.coverage, arm.singles)
        if arm.judge in (GOLD, OFFLINE) and missed:
            figures[f"share_of_missed_found_{key}"] = gain / 100 / missed
        best = gains[arm.strategy, GOLD]
        if arm.judge == OFFLINE and best > 0:
            figures[f"share_of_gold_gain_kept_{key}"] = gain / best
        if arm.judge == GOLD:
            figures |= _beside_post(trial, key, arm)
    return figures


def _beside_post(trial: Trial, key: str, arm: Arm) -> dict[str, float]:
    """Return ratios to the post's loop: at as many a round, and where it first finds as much."""
    figures: dict[str, float] = {}
    ours = trial.mean(State.answer, [run.last for run in arm.runs])
    judged = mean([len(run.last.judged) for run in arm.runs])
    for k, runs in trial.post.items():
        answer = trial.mean(State.answer, [run.last for run in runs])
        over = judged / mean([run.judgements for run in runs])
        if k == POST_KS[0]:
            figures[f"judged_ratio_to_post_of_{k}_{key}"] = over
        if answer >= ours or k == POST_KS[-1]:
            kind = "of_equal_recall" if answer >= ours else f"of_{k}_which_finds_less"
            tokens = [mean([run.tokens for run in held]) for held in (arm.runs, runs)]
            figures[f"judged_ratio_to_post_{kind}_{key}"] = over
            figures[f"tokens_ratio_to_post_{kind}_{key}"] = tokens[0] / tokens[1]
            break
    return figures


def _lines(trial: Trial) -> dict[str, Line]:
    """Return the lines of a plot by ``"strategy, judge"``, and that of one search."""
    lines: dict[str, Line] = {}
    for arm in trial.arms:
        most = max(len(run.states) for run in arm.runs)
        rounds = [[run.after(number) for run in arm.runs] for number in range(1, most + 1)]
        lines[f"{arm.strategy}, {arm.judge}"] = [
            (mean([len(state.judged) for state in states]), trial.mean(State.coverage, states))
            for states in rounds
        ]
    # As far as the loops go, and no further.
    widest = max(x for line in lines.values() for x, _ in line)
    lines["one search"] = [(k, share) for k, share in trial.alone.items() if 10 <= k <= 2 * widest]
    return lines


def _draw(axes: Any, panels: Mapping[str, Mapping[str, Line]]) -> None:
    """Draw one panel a set into the figure of ``axes``, which give way to the panels."""
    figure = axes.figure
    axes.remove()
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    figure.set_size_inches(6.5 * across, 4.2 * down)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for place, (name, lines) in zip(grid, panels.items(), strict=False):
        strategies = list(dict.fromkeys(label.partition(", ")[0] for label in lines))
        for label, line in lines.items():
            strategy, _, judge = label.partition(", ")
            colour = "black" if not judge else f"C{strategies.index(strategy)}"
            place.plot(
                *zip(*line, strict=True),
                STROKES.get(judge, "-"),
                color=colour,
                marker="o" if judge else None,
                markersize=3,
                label=label,
            )
        place.set_title(name, fontsize=10)
        place.set_xlabel("cases judged, mean", fontsize=9)
        place.set_ylabel("share of the relevant among them", fontsize=9)
        right = max(x for label, line in lines.items() for x, _ in line if ", " in label)
        place.set_xlim(9.5, right + 0.5)
    for place in grid[len(panels) :]:
        place.set_axis_off()
    # The panel with the most lines names them all.
    most = max(range(len(panels)), key=lambda number: len(grid[number].get_lines()))
    grid[most].legend(fontsize=6, ncols=2)
