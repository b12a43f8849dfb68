"""The rows of Tables 2 and 3: parts of the data taken away, and mixtures (section 4.3)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casewright.bench.harness import read_ground
from casewright.bench.reaper.trial import (
    LESS,
    MIXED,
    NOTHING,
    REAPER,
    SECOND,
    THIRD,
    Published,
)
from casewright.domains import Domain
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import Ingredients
from casewright.finetune.examples.query_pool import queries_hash, query_pool
from casewright.finetune.instructions import InstructionSource
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.tool_pools import ToolPool, read_pools
from casewright.planner import AnnotatedQuery
from casewright.stores import CachedEncoder
from casewright.tools import Toolbox

FROZEN = "frozen"
#: Of the generic instructions that there are, and tasks of a query, planning itself counted: the
#: paper's best mixture, which Table 2 begins with.
SHARE, TASKS = 1.0, 4
_NONE_GIVEN = "no instructions were given (--instructions FOLDER)"


@dataclass(frozen=True, slots=True)
class Material:
    """A domain, read: what every row is made of.

    Attributes:
        domain: The domain.
        toolbox: Its tools; nothing is looked up with them.
        queries: Annotated queries to learn from, none of them a frozen one.
        frozen: The questions that take no part in training, plan cases or tuning.
        pools: Other names and descriptions, by tool.
        encoder: Embeds questions.
    """

    domain: Domain
    toolbox: Toolbox
    queries: tuple[AnnotatedQuery, ...]
    frozen: tuple[EvaluationItem, ...]
    pools: Mapping[str, ToolPool]
    encoder: CachedEncoder

    def ingredients(
        self, queries: Sequence[AnnotatedQuery], toolbox: Toolbox | None = None
    ) -> Ingredients:
        """Return what a training set of some queries is made of; fewer tools where some are new."""
        tools = self.toolbox if toolbox is None else toolbox
        return Ingredients(
            queries=queries,
            toolbox=tools,
            pools={name: pool for name, pool in self.pools.items() if name in tools},
            measuring=[item.query.query for item in self.frozen],
        )

    def without(self, tool: str) -> Toolbox:
        """Return the tools but for one; ``InputError`` where it is none of them."""
        if tool not in self.toolbox:
            names = ", ".join(self.toolbox.names)
            raise InputError(f"There is no tool {tool!r} to leave out. Tools are: {names}.")
        return self.toolbox.without(tool)


def open_material(domain_name: str | None) -> Material:
    """Read a domain.

    Raises:
        InputError: There is no such domain, or it has no queries to learn from or to measure by.
    """
    if domain_name is None:
        raise InputError("The recipe names no domain. Write domain in its [data].")
    ground = read_ground(domain_name)
    domain, toolbox, kept = ground.domain, ground.toolbox, ground.measuring()
    pool = query_pool(domain.queries(), toolbox, [query.query for query in kept])
    pools = read_pools(domain.tool_pools, toolbox) if domain.tool_pools else {}
    # A class is what a query has, or what its plan says.
    labelled = tuple(item.query for item in items_of(pool.queries, toolbox))
    frozen = tuple(items_of(kept, toolbox))
    return Material(domain, toolbox, labelled, frozen, pools, ground.encoder)


@dataclass(frozen=True, slots=True)
class Training:
    """A training: its folder's name, how its set is made, and of what; rows may share one."""

    name: str
    data: DataSection
    given: Ingredients

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the training set, JSON-plain."""
        return {
            "data": self.data.model_dump(mode="json"),
            "queries": queries_hash(self.given.queries),
            "toolbox": self.given.toolbox.fingerprint(),
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions to measure by, and the plan cases that planners may be shown.

    Attributes:
        name: In tables.
        items: The questions with their gold plans.
        cases: None of them is one of the questions.
    """

    name: str
    items: tuple[EvaluationItem, ...]
    cases: tuple[AnnotatedQuery, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the answers of a planner, JSON-plain."""
        return {
            "questions": queries_hash([item.query for item in self.items]),
            "toolboxes": sorted({item.request.toolbox.fingerprint() for item in self.items}),
            "cases": queries_hash(self.cases),
        }

    def limited(self, limit: int, seed: int) -> QuestionSet:
        """Return at most ``limit`` of the questions, drawn by the seed, in their order."""
        if limit >= len(self.items):
            return self
        places = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=tuple(self.items[place] for place in places))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        table: One of ``TABLES``.
        name: In words.
        training: ``None`` where it cannot be trained; ``note`` says why.
        questions: What is asked.
        paper: The paper's figures.
        note: What must be known to read it.
    """

    table: str
    name: str
    training: Training | None
    questions: QuestionSet
    paper: Published = NOTHING
    note: str = ""


def trainings_of(rows: Sequence[Row]) -> list[Training]:
    """Return the trainings of rows, each once, in order."""
    found = {row.training.name: row.training for row in rows if row.training is not None}
    return list(found.values())


def instruction_places(folder: Path | None) -> tuple[InstructionSource, ...]:
    """Return the sources of generic instructions that lie in a folder; of none, nothing.

    Raises:
        InputError: The folder holds none.
    """
    if folder is None:
        return ()
    found = tuple(
        InstructionSource(reader=name, path=str(folder / reader.files))
        for name, reader in READERS.items()
        if name != HUGGING_FACE and (folder / reader.files).is_file()
    )
    if not found:
        names = sorted(reader.files for reader in READERS.values() if "." in reader.files)
        raise InputError(
            f"--instructions {folder} holds no file of generic instructions. Known are: "
            f"{', '.join(names)}."
        )
    return found


def mixture(
    data: DataSection,
    places: tuple[InstructionSource, ...],
    *,
    share: float = SHARE,
    tasks: int = TASKS,
    evolved: bool = True,
    sampled: bool = True,
    tools_evolved: bool = True,
) -> DataSection:
    """Return the recipe's section with all parts, but for those that are left out.

    Args:
        data: The recipe's section.
        places: Sources of instructions; without any, no row has a share of them.
        share: Of the instructions that there are.
        tasks: Of a query.
        evolved: Some instructions are given constraints; else all are plain.
        sampled: Queries are sampled as the recipe says; else as many are drawn at random.
        tools_evolved: Tools, names and descriptions vary; else they are those of serving.
    """
    changes: dict[str, dict[str, Any]] = {
        "instructions": {"sources": places, "share": share if places else 0.0},
        "ttg": {"tasks_per_query": tasks},
        "sampling": {} if sampled else {"method": "random"},
        "tevo": {"enabled": tools_evolved},
    }
    if not evolved:
        changes["instructions"]["evolved"] = 0.0
    made = {name: getattr(data, name).model_copy(update=change) for name, change in changes.items()}
    return data.model_copy(update=made)


def ablation_rows(material: Material, data: DataSection, folder: Path | None) -> list[Row]:
    """Return the rows of Tables 2 and 3; Table 2's are cumulative.

    Args:
        material: The domain.
        data: The recipe's section.
        folder: Of generic instructions.
    """
    places = instruction_places(folder)

    def row(
        table: str, name: str, slug: str, section: DataSection, paper: Published, needs: bool
    ) -> Row:
        note = _NONE_GIVEN if not places and (needs or table == SECOND) else ""
        # The plan cases are what it may learn from, and nothing else.
        cases = choose_queries(material.queries, section.sampling, material.encoder, section.seed)
        training = Training(slug, section, material.ingredients(material.queries))
        questions = QuestionSet(FROZEN, material.frozen, tuple(cases))
        return Row(table, name, None if needs and not places else training, questions, paper, note)

    rows = [row(SECOND, "all parts", "all-parts", mixture(data, places), REAPER, False)]
    less: dict[str, bool] = {}
    for name, slug, part in (
        ("without Evolve", "no-evolve", "evolved"),
        ("without Evolve and DQS", "no-evolve-dqs", "sampled"),
        ("without Evolve, TEvo and DQS", "no-evolve-dqs-tevo", "tools_evolved"),
    ):
        less[part] = False
        section = mixture(data, places, **less)
        rows.append(row(SECOND, name, slug, section, LESS[name], list(less) == ["evolved"]))
    for (share, tasks), paper in MIXED.items():
        slug = "all-parts" if (share, tasks) == (SHARE, TASKS) else f"ift-{share:g}-tasks-{tasks}"
        section = mixture(data, places, share=share, tasks=tasks)
        name = f"{share:.0%} of the instructions, {tasks} tasks"
        rows.append(row(THIRD, name, slug, section, paper, share > 0))
    return rows
