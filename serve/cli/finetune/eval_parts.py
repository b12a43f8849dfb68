"""The questions, plan cases, tools and planners of an evaluation."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner import Reader, named
from casewright.planner.named import AGENT, CASE_PLANNER, CLASSIFIERS, PARSER, ModelSettings
from casewright.serve.session.defaults import open_stores
from casewright.serve.session.scopes import default_scope

if TYPE_CHECKING:
    from casewright.domains import OpenDomain
    from casewright.finetune.evaluation import EvaluationItem
    from casewright.planner import AnnotatedQuery, Planner
    from casewright.stores import CaseStore, Encoder
    from casewright.tools import Toolbox

#: Kinds of a domain's queries: the held-out test queries, or all but these.
MEASURING, ALL = "measuring", "all"
PUBLIC_SETS = ("nestful", "tau2")
#: Planners that check every plan, so that no plan calls a tool outside the request's toolbox.
CHECKING_PLANNERS = (CASE_PLANNER, PARSER, CLASSIFIERS)

_TRAINED_ON_NOTE = (
    "The shipped planners were trained on these queries, which are also plan cases: the figures "
    "measure what they memorised. --queries measuring selects queries that no planner has seen."
)
_NO_CASES_NOTE = "There are no plan cases for these questions: planners know only tool examples."


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of an evaluation, each with its gold plan, and the plan cases for planners.

    Attributes:
        case_queries: The annotated queries that are plan cases.
        reader: The folder of a reader (the case planner's network), trained on ``case_queries``.
        settings: The options that chose the questions.
        conversion: Counts of a public set's converted and refused records, with the reasons.
        opened: The open domain of the tools; ``None`` if the tools are from a file or a set.
        scope: The user's scope, for planners that call tools.
    """

    items: Sequence[EvaluationItem]
    case_queries: Sequence[AnnotatedQuery] = ()
    reader: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    conversion: Mapping[str, Any] | None = None
    opened: OpenDomain | None = None
    scope: Mapping[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Close the domain's stores."""
        if self.opened is not None:
            self.opened.close()

    def check(self, names: Sequence[str]) -> None:
        """Raise ``InputError`` if a planner with one of the names cannot plan for the questions."""
        if self.opened is None and any(name.startswith(AGENT) for name in names):
            raise InputError(
                "An agent calls tools while it plans, and the tools here cannot be called. Leave "
                "the agent out, or evaluate it on a domain's questions."
            )
        if not self.case_queries and CLASSIFIERS in names:
            raise InputError(
                f"The planner {CLASSIFIERS!r} learns from annotated queries, and there are none "
                "here. Leave it out, or give some with --cases FILE."
            )

    def limited(self, limit: int | None, seed: int) -> Questions:
        """Return these questions with at most ``limit`` random items, in the same order."""
        if limit is None or limit >= len(self.items):
            return self
        indices = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=[self.items[index] for index in indices])


def domain_questions(name: str, kind: str) -> Questions:
    """Return a domain's queries of a kind; raise ``InputError`` if the domain has none."""
    from casewright.domains import find_domain
    from casewright.finetune.evaluation import items_of

    if kind not in (MEASURING, ALL):
        raise InputError(f"There are no queries {kind!r}. --queries are {MEASURING} or {ALL}.")
    domain = find_domain(name)
    case_queries = domain.queries()
    queries = domain.measuring_queries() if kind == MEASURING else case_queries
    if not queries:
        raise InputError(
            f"The domain {name!r} has no {kind} queries. Give your own: --input FILE, with "
            "--toolbox FILE."
        )
    opened = open_stores(domain)
    return Questions(
        items_of(queries, opened.toolbox),
        case_queries,
        reader=domain.reader,
        settings={"domain": name, "queries": kind},
        notes=[*([_TRAINED_ON_NOTE] if kind == ALL else []), *_class_notes(queries)],
        opened=opened,
        scope=default_scope(domain.scopes),
    )


def file_questions(
    source: Path, toolbox_file: Path | None, domain_name: str, cases: Path | None
) -> Questions:
    """Return the annotated queries of a JSON Lines file, for a toolbox or a domain's tools.

    The plan cases are the queries of the file ``cases``, by default the domain's annotated queries,
    or none for a toolbox. Raise ``InputError`` if a file or a gold plan in it is invalid.
    """
    from casewright.domains import find_domain
    from casewright.planner import read_annotated
    from casewright.tools import toolbox_from_file

    queries = read_annotated(source)
    case_queries = [] if cases is None else read_annotated(cases)
    settings = {"input": str(source), "cases": cases and str(cases)}
    if toolbox_file is not None:
        items = _items(source, queries, toolbox_from_file(toolbox_file))
        settings["toolbox"] = str(toolbox_file)
        notes = _file_notes(queries, case_queries)
        return Questions(items, case_queries, settings=settings, notes=notes)
    domain = find_domain(domain_name)
    reader = None
    if cases is None:
        case_queries, reader = domain.queries(), domain.reader
    opened = open_stores(domain)
    try:
        items = _items(source, queries, opened.toolbox)
    except BaseException:
        opened.close()
        raise
    settings = {"domain": domain_name, **settings}
    notes, scope = _file_notes(queries, case_queries), default_scope(domain.scopes)
    return Questions(items, case_queries, reader, settings, notes, opened=opened, scope=scope)


def _items(file: Path, queries: Sequence[AnnotatedQuery], toolbox: Toolbox) -> list[EvaluationItem]:
    from casewright.finetune.evaluation import items_of

    try:
        return items_of(queries, toolbox)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def _file_notes(queries: Sequence[AnnotatedQuery], cases: Sequence[AnnotatedQuery]) -> list[str]:
    from casewright.finetune.neighbours import question_key

    notes = [] if cases else [_NO_CASES_NOTE]
    case_questions = {question_key(query.query) for query in cases}
    if repeated := [str(q.record.id) for q in queries if question_key(q.query) in case_questions]:
        names = ", ".join(repeated[:5]) + (", …" if len(repeated) > 5 else "")
        notes.append(
            f"Planners know the plans of {len(repeated)} of the {len(queries)} questions, which are"
            f" also plan cases: {names}."
        )
    return [*notes, *_class_notes(queries)]


def _class_notes(queries: Sequence[AnnotatedQuery]) -> list[str]:
    from casewright.finetune.evaluation import plan_class

    classes = {plan_class(query.plan) for query in queries}
    unmatched = sorted({query.label for query in queries if query.label} - classes)
    if not unmatched:
        return []
    return [
        f"No wrong plan is counted in the classes {', '.join(unmatched[:5])}: a wrong plan's "
        "class is the tool whose results no step uses. The classes' precision and F1 are too high."
    ]


def set_questions(name: str, data: Path | None) -> Questions:
    """Return a public set's records that convert to the plan language."""
    from casewright.finetune.evaluation.sets import read_nestful, read_tau2

    if name not in PUBLIC_SETS:
        raise InputError(f"There is no set {name!r}. Sets are: {', '.join(PUBLIC_SETS)}.")
    if data is None:
        raise InputError(f"--set {name} is read from a folder. Give it with --data DIR.")
    converted = read_nestful(data) if name == "nestful" else read_tau2(data)
    counts = converted.to_json()
    reasons = "; ".join(f"{count} × {reason}" for reason, count in counts["refused"].items())
    note = (
        f"{name}: {counts['converted']} of {counts['records']} records convert to the plan "
        f"language. Refused: {reasons or 'none'}."
    )
    settings = {"set": name, "split": "test" if name == "tau2" else None}
    notes = [note, _NO_CASES_NOTE]
    return Questions(converted.items, settings=settings, notes=notes, conversion=counts)


@dataclass(frozen=True, slots=True)
class EvaluatedPlanners:
    """Planners to evaluate, by name.

    Attributes:
        constrained: Names of planners that can call only the request's tools.
        removal: Planners without a grammar. They get requests from which a needed tool was removed.
    """

    planners: dict[str, Planner]
    constrained: frozenset[str]
    removal: dict[str, Planner]


def check_planners(names: Sequence[str], model: ModelSettings) -> None:
    """Raise ``InputError`` if planners with these names and settings cannot be made."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The planner {repeated[0]!r} is given twice. Give each --planner once.")
    all_settings = [named.named_planner(name).settings(model) for name in names]
    for name, settings in zip(names, all_settings, strict=True):
        named.check_planner(name, settings)
    # A setting that applies to no planner is refused by the check of the first planner.
    if not any(named.has_local_model(name) for name in names):
        named.check_planner(names[0], replace(model, examples=all_settings[0].examples))
    if model.adapter and not any(settings.adapter for settings in all_settings):
        named.check_planner(names[0], replace(all_settings[0], adapter=model.adapter))
    if all(settings.constrained for settings in all_settings) and not model.constrained:
        named.check_planner(names[0], replace(all_settings[0], constrained=False))
    if all(settings.examples is None for settings in all_settings):
        named.check_planner(names[0], replace(all_settings[0], examples=model.examples))


def make_planners(
    names: Sequence[str],
    questions: Questions,
    store: CaseStore,
    encoder: Encoder,
    model: ModelSettings,
    *,
    removal: bool,
) -> EvaluatedPlanners:
    """Return the planners of these names; with ``removal``, also ``EvaluatedPlanners.removal``.

    Raises:
        InputError: A model cannot be loaded.
        DependencyError: A package that a planner needs is not installed.
    """
    reader = Reader(questions.reader) if questions.reader is not None else None

    def make(name: str, settings: ModelSettings) -> Planner:
        arguments: Any = {"queries": lambda: questions.case_queries, "encoder": encoder}
        return named.make_planner(name, store, reader, settings, scope=questions.scope, **arguments)

    planners: dict[str, Planner] = {}
    for_removal: dict[str, Planner] = {}
    constrained = set()
    for name in names:
        settings = named.named_planner(name).settings(model)
        planners[name] = make(name, settings)
        # A grammar restricts an agent's steps to the request's tools, too.
        checks_plans = name.partition(":")[0] in CHECKING_PLANNERS or name.startswith(AGENT)
        has_grammar = named.has_whole_plan_model(name) and settings.constrained
        if checks_plans or has_grammar:
            constrained.add(name)
        if removal and not checks_plans:
            without_grammar = replace(settings, constrained=False)
            for_removal[name] = make(name, without_grammar) if has_grammar else planners[name]
    return EvaluatedPlanners(planners, frozenset(constrained), for_removal)
