"""The planners of an evaluation by their names, and those that are asked with a tool removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.named import (
    AGENT,
    CASE_PLANNER,
    CLASSIFIERS,
    PARSER,
    ModelSettings,
    check_planner,
    is_local,
    make_planner,
    named_planner,
    writes_locally,
)

if TYPE_CHECKING:
    from casewright.planner import Planner, Reader
    from casewright.serve.cli.finetune.eval_questions import Questions
    from casewright.stores import CaseStore, Encoder

#: Planners that return no plan unchecked, and write none: they can name no other tool.
CHECKED = (CASE_PLANNER, PARSER, CLASSIFIERS)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Planners to evaluate.

    Attributes:
        planners: Label to planner.
        constrained: Labels of those that can name no tool which is not there.
        removal: Label to the planner that is asked with a tool removed: the same, or its model
            with the grammar off.
    """

    planners: dict[str, Planner]
    constrained: frozenset[str]
    removal: dict[str, Planner]


def check_planners(names: Sequence[str], model: ModelSettings) -> None:
    """Refuse what cannot be made, before anything is opened.

    Raises:
        InputError: A name is given twice or is no planner's, or a setting goes with none of them.
    """
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The planner {twice[0]!r} is given twice. Give each --planner once.")
    for name in names:
        check_planner(name, _settings_for(name, model))
    # A setting that goes with none of them is refused by the first.
    taken = [_settings_for(name, model) for name in names]
    if not any(is_local(name) for name in names):
        check_planner(names[0], replace(model, examples=taken[0].examples))
    if model.adapter and not any(own.adapter for own in taken):
        check_planner(names[0], replace(taken[0], adapter=model.adapter))
    if all(own.constrained for own in taken) and not model.constrained:
        check_planner(names[0], replace(taken[0], constrained=False))
    if all(own.examples is None for own in taken):
        check_planner(names[0], replace(taken[0], examples=model.examples))


def _settings_for(name: str, model: ModelSettings) -> ModelSettings:
    """Return those of the settings that go with a planner."""
    return named_planner(name).settings(model)


def make_planners(
    names: Sequence[str],
    questions: Questions,
    store: CaseStore,
    encoder: Encoder,
    model: ModelSettings,
    *,
    removal: bool,
) -> Evaluated:
    """Make planners by their names.

    Args:
        names: As ``make_planner`` takes them.
        questions: What they may know.
        store: Their plan cases.
        encoder: Of questions.
        model: Settings of those with a language model.
        removal: Make those that are asked with a tool removed, too.

    Raises:
        InputError: A model cannot be loaded.
        DependencyError: A package that a planner needs is not installed.
    """
    reader = _reader(questions)

    def made(name: str, own: ModelSettings) -> Planner:
        return make_planner(
            *(name, store, reader, own),
            queries=lambda: questions.known,
            encoder=encoder,
            scope=questions.scope,
        )

    planners: dict[str, Planner] = {}
    asked: dict[str, Planner] = {}
    constrained = set()
    for name in names:
        own = _settings_for(name, model)
        planners[name] = made(name, own)
        # An agent writes its steps under the grammar.
        bound = name.partition(":")[0] in CHECKED or name.startswith(AGENT)
        if bound or (writes_locally(name) and own.constrained):
            constrained.add(name)
        if removal and not bound:
            free = replace(own, constrained=False) if writes_locally(name) else own
            asked[name] = planners[name] if free == own else made(name, free)
    return Evaluated(planners, frozenset(constrained), asked)


def _reader(questions: Questions) -> Reader | None:
    from casewright.planner import Reader

    return Reader(questions.reader) if questions.reader is not None else None
