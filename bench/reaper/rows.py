"""The rows of Tables 2 and 3: parts of the data left out, and mixtures (section 4.3)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casewright.bench.harness import read_ground
from casewright.bench.reaper.trial import LESS, MIXED, NOTHING, REAPER, SECOND, THIRD, Published
from casewright.domains import Domain
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import Ingredients
from casewright.finetune.examples.query_pool import queries_hash, query_pool
from casewright.finetune.instructions import InstructionSource
from casewright.finetune.instructions.readers.hugging_face import BUILDERS
from casewright.finetune.instructions.readers.registry import HUGGING_FACE
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.tool_pools import ToolPool, read_pools
from casewright.planner import AnnotatedQuery
from casewright.stores import CachedEncoder
from casewright.tools import Toolbox

FROZEN = "frozen"
#: The share of the generic instructions, and the tasks of a query with planning itself: the
#: paper's best mixture, which Table 2 begins with.
SHARE, TASKS = 1.0, 4


@dataclass(frozen=True, slots=True)
class Material:
    """A domain as every row uses it.

    Attributes:
        domain: The domain.
        toolbox: Its tools; nothing is looked up with them.
        queries: Annotated queries to learn from, without the frozen ones.
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
        """Return the ingredients of a training set; with fewer tools where a toolbox is given."""
        tools = self.toolbox if toolbox is None else toolbox
        return Ingredients(
            queries=queries,
            toolbox=tools,
            pools={name: pool for name, pool in self.pools.items() if name in tools},
            measuring=[item.query.query for item in self.frozen],
        )

    def without(self, tool: str) -> Toolbox:
        """Return the tools without one of them; raises ``InputError`` where it does not exist."""
        if tool not in self.toolbox:
            names = ", ".join(self.toolbox.names)
            raise InputError(f"There is no tool {tool!r} to leave out. Tools are: {names}.")
        return self.toolbox.without(tool)


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
    """A training: its folder's name, and the data of its set; rows may share one."""

    name: str
    data: DataSection
    given: Ingredients

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the training set, JSON-plain."""
        return {
            "data": self.data.model_dump(mode="json"),
            "queries": queries_hash(self.given.queries),
            "toolbox": self.given.toolbox.fingerprint(),
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions to measure by, and the plan cases that planners may see.

    Attributes:
        name: In tables.
        items: The questions with their gold plans.
        cases: Plan cases; none of them is one of the questions.
    """

    name: str
    items: tuple[EvaluationItem, ...]
    cases: tuple[AnnotatedQuery, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the answers of a planner, JSON-plain."""
        return {
            "questions": queries_hash([item.query for item in self.items]),
            "toolboxes": sorted({item.request.toolbox.fingerprint() for item in self.items}),
            "cases": queries_hash(self.cases),
        }

    def limited(self, limit: int, seed: int) -> QuestionSet:
        """Return at most ``limit`` of the questions, drawn by the seed, in their order."""
        if limit >= len(self.items):
            return self
        drawn = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(self, items=tuple(self.items[number] for number in drawn))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        table: One of ``TABLES``.
        name: In words.
        training: ``None`` where it cannot be trained; ``note`` says why.
        questions: The questions of the row.
        paper: The paper's figures.
        note: A remark that a reader needs.
    """

    table: str
    name: str
    training: Training | None
    questions: QuestionSet
    paper: Published = NOTHING
    note: str = ""


def trainings_of(rows: Sequence[Row]) -> list[Training]:
    """Return the trainings of rows, each once, in order."""
    return list({row.training.name: row.training for row in rows if row.training}.values())


def instruction_places(folder: Path | None) -> tuple[InstructionSource, ...]:
    """Return the sources of generic instructions in a folder; none without a folder.

    Raises:
        InputError: The folder holds none.
    """
    if folder is None:
        return ()
    sources = tuple(
        InstructionSource(reader=HUGGING_FACE, path=str(file))
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
    """Return the recipe's section with all parts, but for those that are left out.

    Args:
        data: The recipe's section.
        sources: Of instructions; without any, no row has a share of them.
        share: Of the instructions.
        tasks: Of a query.
        evolved: Give some instructions constraints; else all are plain.
        sampled: Sample queries as the recipe says; else draw as many at random.
        tools_evolved: Vary tools, names and descriptions; else they are those of serving.
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
        update={name: getattr(data, name).model_copy(update=own) for name, own in changes.items()}
    )


def ablation_rows(material: Material, data: DataSection, folder: Path | None) -> list[Row]:
    """Return the rows of Tables 2 and 3; Table 2's are cumulative.

    Args:
        material: The domain.
        data: The recipe's section.
        folder: Of generic instructions.
    """
    sources = instruction_places(folder)

    def row(
        table: str, name: str, slug: str, paper: Published, *, needs: bool = False, **parts: Any
    ) -> Row:
        section = mixture(data, sources, **parts)
        missing = not sources and (needs or table == SECOND)
        note = "no instructions were given (--instructions FOLDER)" if missing else ""
        # The plan cases are the queries that it may learn from, and nothing else.
        cases = choose_queries(material.queries, section.sampling, material.encoder, section.seed)
        training = Training(slug, section, material.ingredients(material.queries))
        questions = QuestionSet(FROZEN, material.frozen, tuple(cases))
        return Row(table, name, None if needs and missing else training, questions, paper, note)

    rows = [row(SECOND, "all parts", "all-parts", REAPER)]
    less: dict[str, bool] = {}
    slugs = {"evolved": "no-evolve", "sampled": "no-evolve-dqs"}
    slugs["tools_evolved"] = "no-evolve-dqs-tevo"
    for (part, slug), (name, paper) in zip(slugs.items(), LESS.items(), strict=True):
        less[part] = False
        rows.append(row(SECOND, name, slug, paper, needs=part == "evolved", **less))
    for (share, tasks), paper in MIXED.items():
        slug = "all-parts" if (share, tasks) == (SHARE, TASKS) else f"ift-{share:g}-tasks-{tasks}"
        name = f"{share:.0%} of the instructions, {tasks} tasks"
        rows.append(row(THIRD, name, slug, paper, needs=share > 0, share=share, tasks=tasks))
    return rows
