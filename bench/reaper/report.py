"""The bench's report: one object for machines, a table a table for people, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from casewright.bench.reaper.lines import CASES, COLUMNS, RANDOM, TRAINED, Line
from casewright.bench.reaper.trial import FIRST, STUDIES, ReaperTrial
from casewright.bench.tabled_report import TabledReport

_TITLES = {FIRST: "Table 1", "2": "Table 2", "3": "Table 3", STUDIES: "Generalisation studies"}
#: What a line is of; not shown where all lines of a table have the same.
_SAME = ("questions", "class", "planner")


@dataclass(frozen=True, slots=True)
class ReaperReport(TabledReport):
    """A report of the paper's tables; a column that says nothing in one of them is left out."""

    titles: Mapping[str, str] = field(default_factory=lambda: _TITLES)

    def columns(self, lines: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return which columns of a table's lines are shown."""
        return _columns([cast("Line", line) for line in lines])


def _columns(lines: Sequence[Line]) -> list[str]:
    shown = []
    for name in COLUMNS[1:]:
        values = {line[name] for line in lines}
        if values == {None} or (name in _SAME and len(values) == 1):
            continue
        shown.append(name)
    return shown


def figures_of(lines: Sequence[Line]) -> dict[str, float]:
    """Return the figures of each row's trained planner as it is served, and its margins.

    A margin is the difference in right tools from the case planner, which has the same plan cases,
    and from random weights under the same grammar, in shares. Figures that end in ``_alone`` are
    without the aids, of the random weights too.
    """
    found: dict[str, float] = {}
    for row, name in _rows(lines):
        for end, aids in (("", "on"), ("_alone", "off")):
            found |= _row_figures(row, name, aids, end)
    return found | _first_figures([line for line in lines if line["table"] == FIRST])


def _row_figures(row: Sequence[Line], name: str, aids: str, end: str) -> dict[str, float]:
    asked = _served(row, TRAINED, aids)
    if asked is None or asked["tools"] is None:
        return {}
    found = {f"tools_{name}{end}": asked["tools"], f"arguments_{name}{end}": asked["arguments"]}
    for word, planner in (("case_planner", CASES), ("random_weights", RANDOM)):
        other = _served(row, planner, aids)
        if other is not None:
            found[f"tools_{name}_over_{word}{end}"] = round(asked["tools"] - other["tools"], 4)
    return found


def _first_figures(lines: Sequence[Line]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        if line["class"] == "all" and line["tools"] is not None and _is_served(line):
            slug = _slug(line["row"])
            for name in ("tools", "arguments", "arguments_paper", "ms_p50"):
                if line[name] is not None:
                    found[f"{name}_{slug}"] = line[name]
        follows = line["only_provided"]
        if follows is not None and line["plan cases"] == "on":
            found[f"only_provided_{_slug(line['row'])}"] = follows
    return found


def _rows(lines: Sequence[Line]) -> Iterator[tuple[list[Line], str]]:
    """Yield the lines of each row of the other tables, with its name in figures."""
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        if line["table"] != FIRST:
            key = (line["table"], line["row"], line["questions"])
            grouped.setdefault(key, []).append(line)
    for (table, row, questions), own in grouped.items():
        asked = f"_{_slug(questions)}" if table == STUDIES else ""
        yield own, f"table_{table}_{_slug(row)}{asked}"


def _served(lines: Sequence[Line], planner: str, aids: str = "on") -> Line | None:
    found = [line for line in lines if line["planner"] == planner and _is_served(line, aids)]
    return found[0] if found else None


def _is_served(line: Line, aids: str = "on") -> bool:
    on = (None, "on")
    return line["grammar"] in on and line["plan cases"] in on and line["aids"] in (None, aids)


def _slug(text: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return "_".join(words)


def notes_of(trial: ReaperTrial, steps: int | None) -> list[str]:
    """Return what must be known to read the tables."""
    told = [
        "tools: share of plans with the right tool sequence, with its 95 % interval (Wilson); "
        "arguments: and every argument right; arguments_paper: the same over plans with "
        "prod_search or shipment_status. A plan by a fallback, or one that is not valid, counts "
        "as wrong. only_provided: a needed tool was removed, the grammar off, and no other tool "
        "was named than those that are there.",
        "No question took part in training or in the plan cases. The case planner has the "
        "row's plan cases and no reader, which has learned from all queries.",
        "aids: as the planner that ships is served, plan cases have a say in which tools are "
        "called, and texts are spans of the question; of random weights too. Off, the model is "
        "alone.",
        "The paper's figures are of a Mistral-7B on other data (Joshi et al. 2024).",
    ]
    if set(trial.tables) - {FIRST}:
        trained = f"{steps} steps" if steps else "the recipe's epochs"
        told.append(
            f"Every row of Tables 2 and 3 and of the studies is a training of {trained} from one "
            "network, which has seen no query and no tool of the domain: shorter than the shipped "
            "planner's. examples and tokens are those of its training set."
        )
    return told


def draw_rows(axes: Any, lines: Sequence[Line]) -> None:
    """Draw right tools of every row as it is served: a bar, and marks of what is beside it.

    Of Table 1 alone, each planner has a bar.

    Args:
        axes: Matplotlib's.
        lines: Of all tables.
    """
    rows = [
        (served, own)
        for own, _ in _rows(lines)
        if (served := _served(own, TRAINED)) is not None and served["tools"] is not None
    ]
    label = TRAINED
    if not rows:
        alone = [line for line in lines if line["class"] == "all" and _is_served(line)]
        rows = [(line, []) for line in alone if line["tools"] is not None]
        label = "planner"
    axes.barh(range(len(rows)), [served["tools"] for served, _ in rows], 0.6, label=label)
    for planner, mark in ((CASES, "o"), (RANDOM, "x")):
        found = [(_served(own, planner), place) for place, (_, own) in enumerate(rows)]
        points = [(line["tools"], place) for line, place in found if line is not None]
        if points:
            axes.plot(*zip(*points, strict=True), mark, color="black", label=planner)
    names = [f"{served['row']} ({served['questions']})" for served, _ in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of right tool sequences", title="REAPER's tables, here")
    axes.legend(loc="lower right")
