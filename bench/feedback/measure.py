"""Measures the gain of relevance feedback over one search, and the costs beside RepoGPT's loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from casewright.bench.feedback import runs as searches
from casewright.bench.feedback.runs import BLIND, GOLD, OFFLINE, SHUFFLED, K, Run, SearchState
from casewright.bench.harness import mean, p50
from casewright.bench.report import Report
from casewright.finetune.judge_sets.find import find_sets
from casewright.finetune.judge_sets.sets import CODE, DESCRIBED, FeedbackSet, LabelledQuestion
from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import CaseStore, Encoder, Question, feedback
from casewright.stores.progress import note, progress_bar

#: No run reaches these limits, so the machine's speed does not change the figures.
LIMITS = FeedbackLimits(tokens=1_000_000, seconds=600.0)
#: For each judge's name, a function that returns the judge for a question.
JUDGES: Mapping[str, Callable[[LabelledQuestion], feedback.Judge]] = {
    GOLD: searches.GoldJudge,
    OFFLINE: lambda question: feedback.OfflineJudge(),
    SHUFFLED: searches.ShuffledJudge,
    BLIND: lambda question: searches.BlindJudge(),
}
#: Facet weights for questions that name a symbol (the code domain's), and for other questions.
SYMBOL_WEIGHTS, TEXT_WEIGHTS = {"text": 0.3, "title": 0.7}, {"text": 0.8, "title": 0.2}
#: Facet weights by set, and by the suffix of the set's name in tables; else the schema's weights.
WEIGHTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    CODE: {"": SYMBOL_WEIGHTS, ", documents' weights": TEXT_WEIGHTS},
    DESCRIBED: {"": TEXT_WEIGHTS},
}
#: Numbers of results of the single searches, which have no feedback.
SINGLE_KS = (5, 10, 20, 30, 50)
#: The judges' line styles in the plot.
LINE_STYLES = {GOLD: "-", OFFLINE: "--", SHUFFLED: ":", BLIND: "-."}
_NOTES = (
    "Test questions only. The offline judge was trained on the other half of each set's questions, "
    "over the same cases.",
    "ms for ten cases: median time in which the offline judge reads ten cases.",
    "first two, unread: a control that marks the first two cases without reading them. A judge's "
    "gain over this control is the gain of reading.",
    "judged: number of judged cases per question. found: recall of these cases. single: recall of "
    "one search for as many cases. gain: found minus single in points, with its standard error. "
    "Marked cases: judged relevant. answer: recall of the marked cases. precision: precision of "
    f"the marked cases. recall@{K}: recall of the first {K} judged cases, marked cases first.",
    "the post's loop: the loop of the RepoGPT post. This loop judges all results of every round, "
    "also results of earlier rounds. A token is estimated at four characters.",
)
TITLES = {"sets": "feedback: gain in points, default strategy", "all": "feedback: all rows"}
#: A line of the plot: for each round, the mean number of judged cases, and their mean recall.
Line = Sequence[tuple[float, float]]
#: A function that returns a figure of a search, such as recall.
Measure = Callable[[SearchState, LabelledQuestion], float]


class LoopResults(NamedTuple):
    """The results of a loop with a strategy and a judge: a run and a single search per question."""

    strategy: str
    judge: str
    runs: Sequence[Run]
    singles: Sequence[SearchState]  # for each question, one search for as many cases as the run

    @property
    def rounds(self) -> list[list[SearchState]]:
        """The states of all runs after each round; a run that has ended keeps its last state."""
        longest = max(len(run.states) for run in self.runs)
        return [[run.after(number) for run in self.runs] for number in range(1, longest + 1)]


class Trial(NamedTuple):
    """The results on the test questions of a set, with certain facet weights."""

    name: str  # the set's name, with the suffix of the weights
    data: FeedbackSet
    questions: Sequence[LabelledQuestion]
    loops: Sequence[LoopResults]
    post_runs: Mapping[int, Sequence[Run]]  # of RepoGPT's loop, by the number of cases per round
    filter_states: Sequence[SearchState]  # the states of the symbol filter; empty without code
    single_recalls: Mapping[int, float]  # mean recall of one search by the number of results
    judgement_ms: float  # median time of the offline judge for ten cases, in milliseconds

    def mean_of(self, measure: Measure, states: Sequence[SearchState]) -> float:
        """Return the mean of a measure over the questions and their states."""
        return mean([measure(s, q) for s, q in zip(states, self.questions, strict=True)])

    def gain(self, loop: LoopResults) -> tuple[float, float]:
        """Return a loop's mean gain over single searches, in points, and its standard error."""
        differences = [
            100 * (run.last.judged_recall(question) - search.judged_recall(question))
            for run, search, question in zip(loop.runs, loop.singles, self.questions, strict=True)
        ]
        return mean(differences), float(np.std(differences) / np.sqrt(len(differences)))

    def precision(self, states: Sequence[SearchState]) -> float:
        """Return the share of the marked cases that are relevant."""
        right = sum(len(s.marked & q.relevant) for s, q in zip(states, self.questions, strict=True))
        return right / max(sum(len(state.marked) for state in states), 1)


def measure_feedback(
    data: Path | None, encoder: Encoder, *, only: str | None = None, limit: int | None = None
) -> Report:
    """Return the gains on the offline judge's test questions; see ``find_sets`` for the options."""
    note("Reading the questions and the cases of the feedback bench.")
    trials = list(_trials(find_sets(data, only, limit), encoder))
    settings = {
        "sets": {t.data.name: {**t.data.size(), **t.data.origin} for t in trials},
        "weights": {
            f"{name}{suffix}": dict(weights)
            for name, by_suffix in WEIGHTS.items()
            for suffix, weights in by_suffix.items()
        },
        "encoder": encoder.name,
        "limits": {name: getattr(LIMITS, name) for name in ("first", "more", "rounds")},
    }
    figures = {name: value for trial in trials for name, value in _figures(trial).items()}
    rows = [*map(_summary_row, trials), *chain.from_iterable(map(_rows, trials))]
    draw = partial(_draw, sets={trial.name: _lines(trial) for trial in trials})
    return Report("feedback", settings, figures, rows, _NOTES, draw, TITLES)


def _strategies(data: FeedbackSet) -> tuple[list[feedback.Strategy], str]:
    """Return the strategies for a set, and the default strategy's name."""
    default: feedback.Strategy = feedback.SentenceStrategy()
    strategies = [feedback.TextStrategy(), default, feedback.RocchioStrategy()]
    if data.kind == "code":
        default = feedback.NeighbourStrategy()
        strategies.append(default)
    return strategies, default.name


def _trials(sets: Sequence[FeedbackSet], encoder: Encoder) -> Iterator[Trial]:
    # Sets of the same cases share a store.
    for _, group in groupby(sets, key=lambda data: id(data.cases)):
        sharing_sets = list(group)
        note(f"Encoding {len(sharing_sets[0].cases)} cases of {sharing_sets[0].name}.")
        with TemporaryDirectory() as folder, sharing_sets[0].store(encoder, folder) as store:
            for data in sharing_sets:
                for suffix, weights in WEIGHTS.get(data.name, {"": None}).items():
                    yield _trial(f"{data.name}{suffix}", data, store, weights)


def _trial(
    name: str, data: FeedbackSet, store: CaseStore, weights: Mapping[str, float] | None
) -> Trial:
    questions = data.half(training=False)  # the test questions
    strategies, default = _strategies(data)
    # Only the default strategy is also tried with the control judges.
    pairings = [
        (strategy, judge)
        for strategy in strategies
        for judge in (JUDGES if strategy.name == default else (GOLD, OFFLINE))
    ]
    note(f"Asking {len(questions)} questions of {name}, with {len(pairings)} loops each.")
    pairs: list[tuple[LabelledQuestion, Question]] = []
    for labelled in questions:
        question = store.question(labelled.text, weights=weights)
        assert question is not None, "the store of a set has cases"
        pairs.append((labelled, question))
    loops, recalls = [], {k: list[float]() for k in SINGLE_KS}
    post_runs: dict[int, list[Run]] = {k: [] for k in searches.POST_KS}
    total = len(questions) * (len(pairings) + 1)
    with progress_bar(f"Questions of {name}", total, show=None) as advance:
        for strategy, judge_name in pairings:
            runs, singles = [], []
            for labelled, question in pairs:
                judge = JUDGES[judge_name](labelled)
                graph = build_feedback(store, judge, strategy, limits=LIMITS, weights=weights)
                result = FeedbackResult.from_state(graph.invoke({"question": labelled.text}))
                run = searches.loop_run(result)
                runs.append(run)
                singles.append(searches.single_search(question, judge, len(run.last.judged)))
                advance(1)
            loops.append(LoopResults(strategy.name, judge_name, runs, singles))
        for labelled, question in pairs:
            ranking = [neighbour.hit.case.id for neighbour in question.best(max(SINGLE_KS))]
            for k in SINGLE_KS:
                recalls[k].append(SearchState(ranking[:k]).judged_recall(labelled))
            for k in searches.POST_KS:
                post_runs[k].append(searches.post_loop(question, labelled, k))
            advance(1)
    filter_states = []
    if data.kind == "code":
        symbols = searches.SymbolFilter(data.cases)
        chunk_ids = [symbols.find(labelled.text) for labelled in questions]
        filter_states = [SearchState(ids, frozenset(ids)) for ids in chunk_ids]
    single_recalls = {k: mean(values) for k, values in recalls.items()}
    offline = feedback.OfflineJudge()
    median_ms = p50([searches.judgement_ms(question, offline) for _, question in pairs])
    return Trial(name, data, questions, loops, post_runs, filter_states, single_recalls, median_ms)


def _summary_row(trial: Trial) -> dict[str, Any]:
    """Return the row of a set: the gain of each judge with the default strategy."""
    strategy = _strategies(trial.data)[1]
    gains = {loop.judge: trial.gain(loop) for loop in trial.loops if loop.strategy == strategy}
    return {
        "table": "sets",
        "set": trial.name,
        "default strategy": strategy,
        "questions": len(trial.questions),
        "the judge's training questions": len(trial.data.half(training=True)),
        **{judge: f"{gain:+.1f} ± {error:.1f}" for judge, (gain, error) in gains.items()},
        "ms for ten cases": trial.judgement_ms,
    }


def _mean_judged(states: Sequence[SearchState]) -> float:
    return mean([len(state.judged) for state in states])


def _rows(trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield the rows of the loops, of the post's loop, and (for code) of the symbol filter."""

    def row(strategy: str, judge: str, states: Sequence[SearchState]) -> dict[str, Any]:
        labels = {"table": "all", "set": trial.name, "strategy": strategy, "judge": judge}
        found = trial.mean_of(SearchState.judged_recall, states)
        answer = trial.mean_of(SearchState.marked_recall, states)
        judged = _mean_judged(states)
        return {**labels, "rounds": None, "judged": judged, "found": found, "answer": answer}

    def by_round(measure: Measure, rounds: Sequence[Sequence[SearchState]]) -> str:
        return " ".join(f"{trial.mean_of(measure, states):.3f}" for states in rounds)

    for loop in trial.loops:
        gain, error = trial.gain(loop)
        yield {
            **row(loop.strategy, loop.judge, loop.rounds[-1]),
            "rounds": mean([len(run.states) for run in loop.runs]),
            "single": trial.mean_of(SearchState.judged_recall, loop.singles),
            "gain": f"{gain:+.1f} ± {error:.1f}",
            "single answer": trial.mean_of(SearchState.marked_recall, loop.singles),
            "precision": trial.precision(loop.rounds[-1]),
            f"recall@{K}": trial.mean_of(SearchState.recall_at_k, loop.rounds[-1]),
            f"single recall@{K}": trial.mean_of(SearchState.recall_at_k, loop.singles),
            "tokens": round(mean([run.tokens for run in loop.runs])),
            "answer by round": by_round(SearchState.marked_recall, loop.rounds),
            f"recall@{K} by round": by_round(SearchState.recall_at_k, loop.rounds),
        }
    for k, runs in trial.post_runs.items():
        last_states = [run.last for run in runs]
        yield {
            **row(f"the post's loop, {k} a round", GOLD, last_states),
            "rounds": mean([len(run.states) for run in runs]),
            "judged": mean([run.judgements for run in runs]),
            f"recall@{K}": trial.mean_of(SearchState.recall_at_k, last_states),
            "tokens": round(mean([run.tokens for run in runs])),
        }
    if states := trial.filter_states:
        precision = trial.precision(states)
        yield {**row("plain symbol filter", "none", states), "precision": precision}


def _figures(trial: Trial) -> dict[str, float]:
    """Return each loop's gain, its costs, and the share found of what a single search misses."""

    def slug(text: str) -> str:
        return "_".join(re.findall(r"\w+", text))

    name = slug(trial.name)
    figures = {f"single_recall_at_{k}_{name}": share for k, share in trial.single_recalls.items()}
    figures[f"judgement_ms_p50_{name}"] = trial.judgement_ms
    gains = {(loop.strategy, loop.judge): trial.gain(loop)[0] for loop in trial.loops}
    for loop in trial.loops:
        key, gain = slug(f"{name}_{loop.strategy}_{loop.judge}"), gains[loop.strategy, loop.judge]
        figures[f"gain_points_{key}"] = gain
        missed_share = 1 - trial.mean_of(SearchState.judged_recall, loop.singles)
        if loop.judge in (GOLD, OFFLINE) and missed_share:
            figures[f"share_of_missed_found_{key}"] = gain / 100 / missed_share
        gold_gain = gains[loop.strategy, GOLD]
        if loop.judge == OFFLINE and gold_gain > 0:
            figures[f"share_of_gold_gain_kept_{key}"] = gain / gold_gain
        if loop.judge == GOLD:
            figures |= _ratios_to_post(trial, key, loop)
    return figures


def _ratios_to_post(trial: Trial, key: str, loop: LoopResults) -> dict[str, float]:
    """Return a loop's costs divided by the post's costs, at the lowest k and at equal recall."""
    figures: dict[str, float] = {}
    loop_recall = trial.mean_of(SearchState.marked_recall, loop.rounds[-1])
    judged = _mean_judged(loop.rounds[-1])
    for k, runs in trial.post_runs.items():
        post_recall = trial.mean_of(SearchState.marked_recall, [run.last for run in runs])
        ratio = judged / mean([run.judgements for run in runs])
        if k == searches.POST_KS[0]:
            figures[f"judged_ratio_to_post_of_{k}_{key}"] = ratio
        reaches_recall = post_recall >= loop_recall
        if reaches_recall or k == searches.POST_KS[-1]:
            kind = "of_equal_recall" if reaches_recall else f"of_{k}_which_finds_less"
            loop_tokens = mean([run.tokens for run in loop.runs])
            post_tokens = mean([run.tokens for run in runs])
            figures[f"judged_ratio_to_post_{kind}_{key}"] = ratio
            figures[f"tokens_ratio_to_post_{kind}_{key}"] = loop_tokens / post_tokens
            break
    return figures


def _lines(trial: Trial) -> dict[str, Line]:
    """Return the plot's lines by their labels: ``"strategy, judge"``, and "one search"."""
    lines: dict[str, Line] = {
        f"{loop.strategy}, {loop.judge}": [
            (_mean_judged(states), trial.mean_of(SearchState.judged_recall, states))
            for states in loop.rounds
        ]
        for loop in trial.loops
    }
    max_judged = 2 * max(judged for line in lines.values() for judged, _ in line)
    points = trial.single_recalls.items()
    lines["one search"] = [(k, recall) for k, recall in points if 10 <= k <= max_judged]
    return lines


def _draw(axes: Any, sets: Mapping[str, Mapping[str, Line]]) -> None:
    figure, columns = axes.figure, min(len(sets), 2)
    rows = -(-len(sets) // columns)
    axes.remove()
    figure.set_size_inches(6.5 * columns, 4.2 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, (name, lines) in zip(grid, sets.items(), strict=False):
        strategies = list(dict.fromkeys(label.partition(", ")[0] for label in lines))
        for label, line in lines.items():
            strategy, _, judge = label.partition(", ")
            color = f"C{strategies.index(strategy)}" if judge else "black"  # one search
            style = {"color": color, "marker": "o" if judge else None, "markersize": 3}
            panel.plot(*zip(*line, strict=True), LINE_STYLES.get(judge, "-"), label=label, **style)
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("cases judged, mean", fontsize=9)
        panel.set_ylabel("share of the relevant among them", fontsize=9)
        right_edge = max(x for label, line in lines.items() for x, _ in line if ", " in label)
        panel.set_xlim(9.5, right_edge + 0.5)
    for panel in grid[len(sets) :]:
        panel.set_axis_off()
    # The panel with the most lines has the legend.
    max(grid[: len(sets)], key=lambda panel: len(panel.get_lines())).legend(fontsize=6, ncols=2)
