"""What the bench of latency found, as rows, figures and a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from casewright.bench.latency.questions import Question
from casewright.bench.latency.systems import AGENT, ONE_CALL, STATELESS, Looked

#: What systems are called in figures.
_FIGURE_NAMES = {ONE_CALL: "one_call", AGENT: "step_agent", STATELESS: "stateless_agent"}
Done = Mapping[str, Sequence[Looked]]


def by_steps(questions: Sequence[Question], looked: Done) -> dict[int, dict[str, list[Looked]]]:
    """Sort what systems did by the number of steps of the plan.

    Args:
        questions: What was asked.
        looked: By system, in the order of the questions, as often as they were asked.
    """
    steps = [question.steps for question in questions]
    return {
        count: {
            name: [one for place, one in enumerate(own) if steps[place % len(steps)] == count]
            for name, own in looked.items()
        }
        for count in sorted(set(steps))
    }


def rows_of(parts: Mapping[int, Done], step_limit: float) -> list[dict[str, Any]]:
    """Return a row for each number of steps and system.

    Args:
        parts: See ``by_steps``.
        step_limit: Milliseconds in which memory gives the weights that a model step reads.
    """
    return [
        {
            "steps": count,
            "system": name,
            "plans": len(own),
            "model_calls": _mean(own, "model_calls"),
            "model_steps": _mean(own, "model_steps"),
            "prompt_tokens": _mean(own, "prompt_tokens"),
            "written_tokens": _mean(own, "written_tokens"),
            "model_ms_p50": _median(own, "model_ms"),
            "model_ms_p95": float(np.percentile(_values(own, "model_ms"), 95)),
            "memory_limit_ms": float(np.median(_values(own, "model_steps") * step_limit)),
            "tools_ms_p50": _median(own, "tools_ms"),
            "total_ms_p50": _median(own, "total_ms"),
            "over_one_call": _ratio(own, part[ONE_CALL], "model_ms"),
        }
        for count, part in parts.items()
        for name, own in part.items()
    ]


def figures_of(
    questions: Sequence[Question], looked: Done, parts: Mapping[int, Done]
) -> dict[str, float]:
    """Return the figures, by names that say what they are."""
    return dict(_figures(questions, looked, parts))


def _figures(
    questions: Sequence[Question], looked: Done, parts: Mapping[int, Done]
) -> Iterator[tuple[str, float]]:
    for count, part in {**parts, 0: looked}.items():
        end = f"{count}_steps" if count else "all"
        yield f"one_call_model_ms_p50_{end}", _median(part[ONE_CALL], "model_ms")
        for name in (AGENT, STATELESS):
            for field in ("model_ms", "total_ms"):
                ratio = _ratio(part[name], part[ONE_CALL], field)
                yield f"ratio_{_FIGURE_NAMES[name]}_over_one_call_{field}_{end}", ratio
            read, once = (_mean(part[one], "prompt_tokens") for one in (name, ONE_CALL))
            yield f"ratio_{_FIGURE_NAMES[name]}_over_one_call_prompt_tokens_{end}", read / once
    for name, own in looked.items():
        gold = [str(question.query.plan) for question in questions] * (len(own) // len(questions))
        right = [one.plan == plan for one, plan in zip(own, gold, strict=True)]
        yield f"scripted_plans_right_{_FIGURE_NAMES[name]}", float(np.mean(right))


def draw_latency(axes: Any, parts: Mapping[int, Done]) -> None:
    """Draw the milliseconds until all is looked up over the number of steps, a line a system."""
    counts = list(parts)
    for name, style in ((STATELESS, "^-"), (AGENT, "s-"), (ONE_CALL, "o-")):
        own = [_median(parts[count][name], "total_ms") for count in counts]
        axes.plot(counts, own, style, label=f"{name}, with its tools")
    tools = [_median(parts[count][ONE_CALL], "tools_ms") for count in counts]
    axes.plot(counts, tools, ":", color="grey", label=f"the tools of {ONE_CALL}")
    axes.set_xticks(counts)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="steps of the plan", ylabel="milliseconds, median")
    axes.set_title("From the question to what was looked up")
    axes.grid(alpha=0.3)
    axes.legend()


def _values(looked: Sequence[Looked], field: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([getattr(one, field) for one in looked], dtype=np.float64)


def _mean(looked: Sequence[Looked], field: str) -> float:
    return float(np.mean(_values(looked, field)))


def _median(looked: Sequence[Looked], field: str) -> float:
    return float(np.median(_values(looked, field)))


def _ratio(above: Sequence[Looked], below: Sequence[Looked], field: str) -> float:
    """Return the median of the ratios question by question."""
    return float(np.median(_values(above, field) / _values(below, field)))
