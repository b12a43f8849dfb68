"""The rows of Tables 2 and 3: parts of the data left out, and mixtures (section 4.3)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from casewright.bench.harness import read_ground
from casewright.bench.report import published
from casewright.domains import Domain
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import Ingredients
from casewright.finetune.examples.query_pool import queries_hash, query_pool
from casewright.finetune.instructions import InstructionSource
from casewright.finetune.instructions.data_sets import BUILDERS
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.tool_pools import ToolPool, read_pools
from casewright.planner import AnnotatedQuery
from casewright.stores import CachedEncoder
from casewright.stores.paths import cache_folder
from casewright.tools import Toolbox

#: The paper's tables by the names that ``--table`` takes.
TABLES = FIRST, SECOND, THIRD = "1", "2", "3"


@dataclass(frozen=True, slots=True)
class ReaperTrial:
    """The options of the command.

    Trainings and figures are cached in ``folder``, each under a hash of its settings: an
    interrupted run can be continued.

    Raises:
        InputError: A table does not exist, or a number is too small.
    """

    tables: tuple[str, ...] = TABLES
    folder: Path = field(default_factory=lambda: cache_folder() / "bench-reaper")
    recipe: str = "reaper"
    steps: int | None = None
    planner: Path | None = None
    instructions: Path | None = None
    limit: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        known = f"Tables are: {', '.join(TABLES)}."
        if wrong := [name for name in self.tables if name not in TABLES]:
            raise InputError(f"There is no table {wrong[0]!r}. {known}")
        if not self.tables:
            raise InputError(f"No table is asked for. {known}")
        if self.instructions is not None and not self.instructions.is_dir():
            raise InputError(
                f"--instructions {self.instructions} is no folder. Give one with generic "
                "instructions."
            )
        if self.limit < 1:
            raise InputError(f"--limit is {self.limit}. Give 1 at least.")


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's figures of one row.

    Attributes:
        arguments_paper: Share with every argument right, too, of the plans that the paper counts.
        only_provided: Share that follows a changed list of tools.
        classes: By class: precision, recall, F1, and the training data of the class.
    """

    tools: float | None = None
    arguments_paper: float | None = None
    only_provided: float | None = None
    ms_p50: float | None = None
    trained: str = ""
    classes: Mapping[str, tuple[float, float, float, str]] = field(default_factory=dict)

    def cell(self, label: str = "all", *, grammar: bool = True) -> str | None:
        """Return the figures of a class, or of all, as a table's cell; ``None`` without any.

        Instruction following is measured without the grammar, everything else with it.
        """
        if label != "all":
            if label not in self.classes or not grammar:
                return None
            precision, recall, f1, trained = self.classes[label]
            return f"precision {precision:g}, recall {recall:g}, f1 {f1:g} ({trained})"
        names = ("tools", "arguments_paper", "ms_p50") if grammar else ("only_provided",)
        values = [(name, getattr(self, name)) for name in names]
        text = ", ".join(f"{name} {value:g}" for name, value in values if value is not None)
        return f"{text} ({self.trained})" if text and self.trained else text or None


_PAPER = published("reaper")
NOTHING = Published()
UNTUNED, ENSEMBLE, REAPER = (
    Published(**_PAPER["table_1"][name]) for name in ("untuned", "ensemble", "reaper")
)
#: Table 2, by the omitted parts; ``REAPER`` is its first row.
LESS = {name: Published(**figures) for name, figures in _PAPER["table_2"].items()}
#: Table 3, by the share of the generic instructions and the tasks of a query.
MIXED = {
    (float(name.split()[0]), int(name.split()[1])): Published(**figures)
    for name, figures in _PAPER["table_3"].items()
}


FROZEN = "frozen"
#: The share of the generic instructions, and the tasks of a query with planning itself: the
#: paper's best mixture, which Table 2 begins with.
SHARE, TASKS = 1.0, 4


@dataclass(frozen=True, slots=True)
class Material:
    """A domain with its queries to learn from and its frozen questions.

    Attributes:
        pools: Other names and descriptions by tool.
    """

    domain: Domain
    toolbox: Toolbox
    queries: tuple[AnnotatedQuery, ...]
    frozen: tuple[EvaluationItem, ...]
    pools: Mapping[str, ToolPool]
    encoder: CachedEncoder

    def ingredients(self) -> Ingredients:
        """Return the ingredients of a training set."""
        return Ingredients(
            queries=self.queries,
            toolbox=self.toolbox,
            pools=self.pools,
            measuring=[item.query.query for item in self.frozen],
        )


def open_material(domain_name: str | None) -> Material:
    """Return a domain's material.

    Raises:
        InputError: The domain does not exist, or has no queries to learn from or to measure by.
    """
    if domain_name is None:
        raise InputError("The recipe names no domain. Write domain in its [data].")
    ground = read_ground(domain_name)
    domain, toolbox, frozen = ground.domain, ground.toolbox, ground.measuring()
    pool = query_pool(domain.queries(), toolbox, [query.query for query in frozen])
    pools = read_pools(domain.tool_pools, toolbox) if domain.tool_pools else {}
    # Items carry a class for every query, from its plan where the query has none.
    queries = tuple(item.query for item in items_of(pool.queries, toolbox))
    items = tuple(items_of(frozen, toolbox))
    return Material(domain, toolbox, queries, items, pools, ground.encoder)


@dataclass(frozen=True, slots=True)
class Training:
    """A training, which rows may share: its folder's name, and the data of its set."""

    name: str
    data: DataSection
    ingredients: Ingredients

    @property
    def identity(self) -> dict[str, Any]:
        """The key of the training set, JSON-plain."""
        return {
            "data": self.data.model_dump(mode="json"),
            "queries": queries_hash(self.ingredients.queries),
            "toolbox": self.ingredients.toolbox.fingerprint(),
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions to measure by, and the planners' plan cases, none of which is a question."""

    name: str
    items: tuple[EvaluationItem, ...]
    cases: tuple[AnnotatedQuery, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """The key of a planner's answers, JSON-plain."""
        return {
            "questions": queries_hash([item.query for item in self.items]),
            "toolboxes": sorted({item.request.toolbox.fingerprint() for item in self.items}),
            "cases": queries_hash(self.cases),
        }

    def limited(self, limit: int, seed: int) -> QuestionSet:
        """Return a random sample of at most ``limit`` questions, in their order."""
        if limit >= len(self.items):
            return self
        sample = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=tuple(self.items[number] for number in sample))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; ``training`` is ``None`` if it cannot be trained, as ``note`` says."""

    table: str
    name: str
    training: Training | None
    questions: QuestionSet
    paper: Published = NOTHING
    note: str = ""


def trainings_of(rows: Sequence[Row]) -> list[Training]:
    """Return the trainings of rows, each once, in order."""
    return list({row.training.name: row.training for row in rows if row.training}.values())


def instruction_sources(folder: Path | None) -> tuple[InstructionSource, ...]:
    """Return the sources of generic instructions in a folder; none without a folder.

    Raises:
        InputError: The folder holds none.
    """
    if folder is None:
        return ()
    sources = tuple(
        InstructionSource(path=str(file))
        for file in sorted(folder.iterdir())
        if file.suffix in BUILDERS
    )
    if not sources:
        raise InputError(
            f"--instructions {folder} holds no file of generic instructions. Give a folder with "
            f"files that end in {', '.join(sorted(BUILDERS))}."
        )
    return sources


def mixture(
    data: DataSection,
    sources: tuple[InstructionSource, ...],
    *,
    share: float = SHARE,
    tasks: int = TASKS,
    evolved: bool = True,
    sampled: bool = True,
    tools_evolved: bool = True,
) -> DataSection:
    """Return the recipe's data section with all parts but the omitted ones.

    Args:
        evolved: Give some instructions constraints.
        sampled: Sample queries as the recipe says, not at random.
        tools_evolved: Vary tools, names and descriptions.
    """
    changes: dict[str, dict[str, Any]] = {
        "instructions": {"sources": sources, "share": share if sources else 0.0},
        "ttg": {"tasks_per_query": tasks},
        "sampling": {} if sampled else {"method": "random"},
        "tevo": {"enabled": tools_evolved},
    }
    if not evolved:
        changes["instructions"]["evolved"] = 0.0
    return data.model_copy(
        update={
            name: getattr(data, name).model_copy(update=values) for name, values in changes.items()
        }
    )


def ablation_rows(material: Material, data: DataSection, folder: Path | None) -> list[Row]:
    """Return the rows of Tables 2 and 3; the rows of Table 2 are cumulative."""
    sources = instruction_sources(folder)

    def row(
        table: str, name: str, slug: str, paper: Published, *, needs: bool = False, **parts: Any
    ) -> Row:
        section = mixture(data, sources, **parts)
        missing = not sources and (needs or table == SECOND)
        note = "no instructions were given (--instructions FOLDER)" if missing else ""
        # The plan cases are the queries that the training learns from.
        cases = choose_queries(material.queries, section.sampling, material.encoder, section.seed)
        training = Training(slug, section, material.ingredients())
        questions = QuestionSet(FROZEN, material.frozen, tuple(cases))
        return Row(table, name, None if needs and missing else training, questions, paper, note)

    rows = [row(SECOND, "all parts", "all-parts", REAPER)]
    omitted: dict[str, bool] = {}
    slugs = {"evolved": "no-evolve", "sampled": "no-evolve-dqs"}
    slugs["tools_evolved"] = "no-evolve-dqs-tevo"
    for (part, slug), (name, paper) in zip(slugs.items(), LESS.items(), strict=True):
        omitted[part] = False
        rows.append(row(SECOND, name, slug, paper, needs=part == "evolved", **omitted))
    for (share, tasks), paper in MIXED.items():
        slug = "all-parts" if (share, tasks) == (SHARE, TASKS) else f"ift-{share:g}-tasks-{tasks}"
        name = f"{share:.0%} of the instructions, {tasks} tasks"
        rows.append(row(THIRD, name, slug, paper, needs=share > 0, share=share, tasks=tasks))
    return rows
