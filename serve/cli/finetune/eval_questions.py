"""The questions, plan cases and tools of an evaluation."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.named import AGENT, CASE_PLANNER, CLASSIFIERS
from casewright.serve.session.scopes import demo_scope

if TYPE_CHECKING:
    from casewright.domains import Domain, OpenDomain
    from casewright.finetune.evaluation import EvaluationItem
    from casewright.planner import AnnotatedQuery
    from casewright.tools import Toolbox

#: Which of a domain's queries are planned for.
MEASURING, ALL = "measuring", "all"
SETS = ("nestful", "tau2")

_REMEMBERED = (
    "The shipped planners were trained on these queries, and they are plan cases: the figures are "
    "of what planners remember. --queries measuring are those that none has seen."
)
_UNTAUGHT = "There are no plan cases for these: planners know the tools' own examples alone."


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of an evaluation, and the plan cases that planners may know.

    Attributes:
        items: Questions with gold plans.
        known: Annotated queries that are plan cases.
        reader: Folder of a reader that was trained on them; ``None`` without one.
        settings: Where they are from.
        notes: What must be known to read the figures.
        conversion: Of a public set: what converted, and why the rest did not.
        opened: The domain, where its tools are asked about.
        scope: Who asks, for its tools.
    """

    items: Sequence[EvaluationItem]
    known: Sequence[AnnotatedQuery] = ()
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

    def check(self, planners: Sequence[str]) -> None:
        """Refuse planners that cannot plan for these.

        Raises:
            InputError: An agent, which calls tools, where none can be called; or classifiers where
                there is nothing to learn from.
        """
        if self.opened is None and any(name.startswith(AGENT) for name in planners):
            raise InputError(
                "An agent calls the tools that it plans with, and these cannot be called. Leave "
                "it out, or evaluate it on a domain's questions."
            )
        if not self.known and CLASSIFIERS in planners:
            raise InputError(
                f"The planner {CLASSIFIERS!r} learns from annotated queries, and there are none "
                "here. Leave it out, or give some with --cases FILE."
            )

    def limited(self, limit: int | None, seed: int) -> Questions:
        """Return these with at most so many of the items, drawn at random, in their order."""
        if limit is None or limit >= len(self.items):
            return self
        kept = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=[self.items[place] for place in kept])

    def without_class(self, label: str, planners: Sequence[str]) -> Questions:
        """Return these with no plan case of a class.

        Raises:
            InputError: A planner was trained on the class all the same, or no question is of it.
        """
        from casewright.finetune.evaluation import check_class

        check_class(self.items, label)
        if CASE_PLANNER in planners and self.reader is not None:
            raise InputError(
                f"The reader of the planner {CASE_PLANNER!r} was trained on every class. For "
                f"--new-class take --planner {CLASSIFIERS}, which learn from plan cases here, or a "
                "local model that was trained without the class."
            )
        known = [query for query in self.known if query.label != label]
        return replace(self, known=known)


def domain_questions(name: str, which: str) -> Questions:
    """Return a domain's annotated queries: those for measuring only, or all others.

    Raises:
        InputError: The domain has no such queries.
    """
    from casewright.domains import find_domain
    from casewright.finetune.evaluation import items_of

    if which not in (MEASURING, ALL):
        raise InputError(f"There are no queries {which!r}. --queries are {MEASURING} or {ALL}.")
    domain = find_domain(name)
    known = domain.queries()
    asked = domain.measuring_queries() if which == MEASURING else known
    if not asked:
        raise InputError(
            f"The domain {name!r} has no {which} queries. Give your own: --input FILE, with "
            "--toolbox FILE."
        )
    opened = _open(domain)
    return Questions(
        items_of(asked, opened.toolbox),
        known,
        domain.reader,
        {"domain": name, "queries": which},
        [*([_REMEMBERED] if which == ALL else []), *_class_notes(asked)],
        opened=opened,
        scope=demo_scope(domain.scopes),
    )


def file_questions(
    source: Path, toolbox_file: Path | None, domain_name: str, cases: Path | None
) -> Questions:
    """Return the annotated queries of a file, planned for with a toolbox or a domain's tools.

    Args:
        source: Annotated queries, JSON Lines.
        toolbox_file: Tools; without one, the domain's, its plan cases and its reader.
        domain_name: The domain.
        cases: Annotated queries that planners may know; without one, the domain's for its own
            tools, else none.

    Raises:
        InputError: A file cannot be read or holds something else, or a gold plan is not valid.
    """
    from casewright.domains import find_domain
    from casewright.planner import read_annotated
    from casewright.tools import toolbox_from_file

    asked = read_annotated(source)
    known = [] if cases is None else read_annotated(cases)
    settings = {"input": str(source), "cases": cases and str(cases)}
    if toolbox_file is not None:
        items = _items(source, asked, toolbox_from_file(toolbox_file))
        settings["toolbox"] = str(toolbox_file)
        return Questions(items, known, None, settings, _file_notes(asked, known))
    domain = find_domain(domain_name)
    reader = None
    if cases is None:
        known, reader = domain.queries(), domain.reader
    opened = _open(domain)
    try:
        items = _items(source, asked, opened.toolbox)
    except BaseException:
        opened.close()
        raise
    told = {"domain": domain_name, **settings}
    notes = _file_notes(asked, known)
    return Questions(
        items, known, reader, told, notes, opened=opened, scope=demo_scope(domain.scopes)
    )


def _items(source: Path, asked: Sequence[AnnotatedQuery], toolbox: Toolbox) -> list[EvaluationItem]:
    from casewright.finetune.evaluation import items_of

    try:
        return items_of(asked, toolbox)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _file_notes(asked: Sequence[AnnotatedQuery], known: Sequence[AnnotatedQuery]) -> list[str]:
    from casewright.planner.spans import normalized

    notes = [] if known else [_UNTAUGHT]
    taught = {normalized(query.query) for query in known}
    if seen := sum(normalized(query.query) in taught for query in asked):
        notes.append(
            f"{seen} of the {len(asked)} questions are plan cases too: planners have their answers."
        )
    return [*notes, *_class_notes(asked)]


def _class_notes(asked: Sequence[AnnotatedQuery]) -> list[str]:
    from casewright.finetune.evaluation import plan_class

    classes = {plan_class(query.plan) for query in asked}
    named = sorted({query.label for query in asked if query.label} - classes)
    if not named:
        return []
    return [
        f"No wrong plan is taken for one of the classes {', '.join(named[:5])}: a wrong plan's "
        "class is the tool whose results nothing else needs. Their precision and F1 flatter."
    ]


def set_questions(name: str, data: Path | None) -> Questions:
    """Return the records of a public set that convert to the plan language.

    Raises:
        InputError: There is no such set, no folder was given, or it holds something else.
    """
    from casewright.finetune.evaluation.sets import read_nestful, read_tau2

    if name not in SETS:
        raise InputError(f"There is no set {name!r}. Sets are: {', '.join(SETS)}.")
    if data is None:
        raise InputError(f"--set {name} is read from a folder. Give it with --data DIR.")
    made = read_nestful(data) if name == "nestful" else read_tau2(data)
    told = made.to_json()
    why = "; ".join(f"{count} × {reason}" for reason, count in made.reasons.items())
    note = (
        f"{name}: {told['converted']} of {told['records']} records convert to the plan language. "
        f"Refused: {why or 'none'}."
    )
    settings = {"set": name, "split": "test" if name == "tau2" else None}
    return Questions(made.items, (), None, settings, [note, _UNTAUGHT], told)


def _open(domain: Domain) -> OpenDomain:
    from casewright.stores import default_encoder
    from casewright.stores.paths import data_folder

    return domain.open(data_folder() / domain.name, default_encoder(), False)
