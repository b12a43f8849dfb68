"""What the bench of decoding found, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.bench.decoding.agreement import Agreement
from casewright.bench.decoding.examples import Exampled
from casewright.bench.decoding.grammar_cost import GrammarCost
from casewright.bench.decoding.systems import KEPT, MASKED, OWN, PLAIN, Made


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured.

    Attributes:
        made: By system, what it wrote; the same plans in the same order. The decoder is there
            again for each number of plan cases in the prompt.
        gold: The plans that were to be written, in that order.
        exampled: The prompts by their number of plan cases.
        right: Share of a trained model's own plans with the right tools, by that number.
        greedy: The decoder beside masked ``generate``, without a script.
        grammars: What the grammar alone costs.
        steps: Milliseconds of a call of the network, by how many tokens it reads.
        weight_bytes: That a model step reads.
        bandwidth: Of the memory that they are in; bytes a second.
    """

    made: Mapping[str, Sequence[Made]]
    gold: Sequence[str]
    exampled: Sequence[Exampled]
    right: Mapping[int, float]
    greedy: Agreement
    grammars: Sequence[GrammarCost]
    steps: Mapping[int, float]
    weight_bytes: int
    bandwidth: float

    @property
    def own(self) -> Sequence[Made]:
        """What was written by the decoder that keeps the head."""
        return self.made[OWN + KEPT]

    @property
    def limits(self) -> list[float]:
        """Milliseconds below which memory cannot give the weights, for each of its own plans."""
        step = 1000 * self.weight_bytes / self.bandwidth
        return [one.model_steps * step for one in self.own]


def rows_of(results: Results) -> list[dict[str, Any]]:
    """Return the table: systems, numbers of plan cases, the memory's limit, grammars."""
    right = {one.name: results.right.get(one.count) for one in results.exampled}
    rows = [
        {**_made_row(name, made), "tools_right": right.get(name)}
        for name, made in results.made.items()
    ]
    rows.append(_row("limit of memory for casewright, head kept", results.limits))
    for cost in results.grammars:
        name = cost.toolbox.replace("_", " ")
        rows.append(_row(f"grammar, {name}: ready", cost.made))
        if cost.whole:
            rows.append(_row(f"grammar, {name}: whole plan", cost.whole))
    if not results.right:
        rows = [{k: v for k, v in row.items() if k != "tools_right"} for row in rows]
    return rows


def figures_of(results: Results) -> dict[str, float]:
    """Return the figures, by names that say what they are."""
    return dict(_figures(results))


def _figures(results: Results) -> Iterator[tuple[str, float]]:
    own = results.own
    times = _times(own)
    yield "casewright_ms_p50", float(np.median(times))
    yield "casewright_ms_p95", float(np.percentile(times, 95))
    yield "memory_limit_ms_p50", float(np.median(results.limits))
    yield "ratio_casewright_over_memory_limit_p50", _ratio(times, np.array(results.limits))
    for name, system in (("generate", PLAIN), ("masked_generate", MASKED)):
        kept, whole = results.made[system + KEPT], results.made[system]
        steps = sum(one.model_steps for one in own) / sum(one.model_steps for one in kept)
        yield f"share_of_{name}_model_steps", steps
        # Like for like: the head is given to both, or to neither.
        yield f"ratio_{name}_over_casewright_head_kept", _ratio(_times(kept), times)
        yield (
            f"ratio_{name}_over_casewright_head_read",
            _ratio(_times(whole), _times(results.made[OWN])),
        )
        yield f"ratio_{name}_over_casewright_as_called", _ratio(_times(whole), times)
    for name, system in (("casewright", OWN + KEPT), ("masked_generate", MASKED + KEPT)):
        wanted = zip(results.made[system], _repeated(results.gold, own), strict=True)
        yield f"scripted_plans_right_{name}", float(np.mean([m.text == g for m, g in wanted]))
    for part in ("plans", "same_tokens", "same_text", "explained", "unexplained"):
        yield f"greedy_{part}", float(getattr(results.greedy, part))
    for cost in results.grammars:
        yield f"grammar_ms_p50_{cost.toolbox}", float(np.median(cost.made))
        yield f"grammar_ms_p95_{cost.toolbox}", float(np.percentile(cost.made, 95))
        yield f"grammar_ms_first_request_{cost.toolbox}", cost.first
    for one in results.exampled:
        yield f"prompting_ms_{one.count}_plan_cases", one.prompting_ms
        if one.count in results.right:
            yield f"tool_accuracy_{one.count}_plan_cases", results.right[one.count]
    for width, milliseconds in results.steps.items():
        yield f"network_ms_p50_reading_{width}_tokens", milliseconds
    yield "memory_gb_per_s", results.bandwidth / 1e9
    yield "weights_gb_per_model_step", results.weight_bytes / 1e9


def _made_row(name: str, made: Sequence[Made]) -> dict[str, Any]:
    return {
        **_row(name, _times(made)),
        "prompt_tokens": float(np.median([one.prompt_tokens for one in made])),
        "plan_tokens": float(np.mean([one.plan_tokens for one in made])),
        "model_steps": float(np.mean([one.model_steps for one in made])),
    }


def _row(name: str, milliseconds: Sequence[float] | np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "system": name,
        "plans": len(milliseconds),
        "prompt_tokens": None,
        "plan_tokens": None,
        "model_steps": None,
        "ms_p50": float(np.median(milliseconds)),
        "ms_p95": float(np.percentile(milliseconds, 95)),
        "tools_right": None,
    }


def _times(made: Sequence[Made]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([one.milliseconds for one in made])


def _ratio(above: Any, below: Any) -> float:
    """Return the median of the ratios plan by plan."""
    return float(np.median(above / below))


def _repeated(gold: Sequence[str], made: Sequence[Made]) -> list[str]:
    return list(gold) * (len(made) // len(gold))


def draw_times(axes: Any, made: Mapping[str, Sequence[Made]]) -> None:
    """Draw the systems' milliseconds a plan over their model steps."""
    ways = (PLAIN, PLAIN + KEPT, MASKED, MASKED + KEPT, OWN, OWN + KEPT)
    for number, name in enumerate(ways):
        steps = [one.model_steps for one in made[name]]
        # A colour for each way to write; filled where the head is kept.
        colour = f"C{number // 2}"
        inside = colour if name.endswith(KEPT) else "none"
        style = {"color": colour, "markerfacecolor": inside, "label": name}
        axes.plot(steps, list(_times(made[name])), "s^o"[number // 2], alpha=0.8, **style)
    axes.set(xlabel="model steps of a plan", ylabel="milliseconds a plan")
    axes.set_ylim(bottom=0)
    axes.set_title("Writing the same plans with one model")
    axes.grid(alpha=0.3)
    axes.legend()
