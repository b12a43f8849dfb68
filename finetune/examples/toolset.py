"""Training examples made from public tool-use sets, in which each query lists its own tools.

TEvo (``tevo``) varies the queries' prompts, and TTG (``ttg``) makes several tasks from a query.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.shared_toolboxes import (
    NEEDED_TOOL_SIMILARITY,
    SAME_TOOL_SIMILARITY,
)
from casewright.finetune.examples.tevo import (
    DrawnToolbox,
    PromptVariation,
    Renaming,
    TevoSettings,
    vary_prompts,
)
from casewright.finetune.examples.ttg import TtgSettings, task_examples
from casewright.finetune.neighbours import (
    Neighbours,
    question_key,
    tool_embeddings,
    unit_embeddings,
)
from casewright.finetune.section import Section, folder_of, must_exist, recipe_path
from casewright.finetune.tool_sets.registry import READERS, reader, tool_queries
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec


def _absolute_path(path: str, info: ValidationInfo) -> str:
    """Return the absolute path of a recipe's set; without a recipe, return ``path`` unchanged."""
    if info.context is None or not path:
        return path
    resolved, set_reader = recipe_path(info, path), READERS.get(info.data.get("reader", ""))
    if set_reader and must_exist(info) and not resolved.exists():
        raise ValueError(
            f'There is nothing at "{path}" in {folder_of(info)}. Give {set_reader.files}, of '
            f"{set_reader.origin}, in the recipe's folder or in the folder of --sets."
        )
    return str(resolved)


#: The path of a tool-use set; validation makes the path absolute.
SourcePath = Annotated[str, AfterValidator(_absolute_path)]


class ToolsetSource(Section):
    """A public tool-use set.

    Attributes:
        reader: The set's reader, a key of ``READERS``.
        path: The set's file or folder.
        limit: Maximum number of queries; the seed decides which queries are used.
        copies: Number of prompts for each query, each with a newly drawn toolbox.
        measuring: The file or folder of a test set for the same reader, or an empty text. The test
            set's questions and tools are omitted.
    """

    reader: str
    path: SourcePath = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    copies: int = Field(default=1, ge=1, le=1000)
    measuring: SourcePath = ""

    @field_validator("reader")
    @classmethod
    def _reader_exists(cls, name: str) -> str:
        reader(name)
        return name


@dataclass(frozen=True, slots=True)
class Toolset:
    """The queries and the tools of a tool-use set; a tool's name is unique in the whole set.

    ``listed_tools`` maps a query's id to the names of the tools that the set lists for it.
    """

    name: str
    queries: Sequence[AnnotatedQuery]
    listed_tools: Mapping[str, Sequence[str]]
    tools: Mapping[str, ToolSpec]

    @classmethod
    def read(
        cls,
        source: ToolsetSource,
        test_question_keys: Collection[str],
        seen_keys: set[str],
        rng: random.Random,
        refused: Counter[str],
    ) -> Self:
        """Read a set; refuse queries whose question is in ``test_question_keys`` or ``seen_keys``.

        Both hold results of ``question_key``; the read queries' keys are added to ``seen_keys``.
        ``refused`` counts the refused queries by reason. Tools of ``source.measuring`` are omitted.
        ``InputError`` if the set cannot be read, or has no usable query.
        """
        records = tool_queries(source.reader, Path(source.path), refused)
        test_set = tool_queries(source.reader, Path(source.measuring)) if source.measuring else []
        test_keys = {*test_question_keys, *(question_key(query.query) for query, _ in test_set)}
        test_tools = {name for _, toolbox in test_set for name in _real_tool_names(toolbox)}
        tools: dict[str, ToolSpec] = {}
        usable: list[tuple[AnnotatedQuery, list[str]]] = []
        for query, toolbox in records:
            listed = [name for name in _real_tool_names(toolbox) if name not in test_tools]
            key, reason = question_key(query.query), ""
            if not test_tools.isdisjoint(query.plan.tools):
                reason = "a call of a test set's tool"
            elif key in test_keys:
                reason = "a test question"
            elif key in seen_keys:
                reason = "a repeated question"
            elif any(tools.get(name, toolbox[name]) != toolbox[name] for name in listed):
                # Tools' examples are found by the names of tools, so a name must mean one tool.
                reason = "a tool with the name of a different tool"
            if reason:
                refused[f"{source.reader}: {reason}"] += 1
                continue
            seen_keys.add(key)
            tools |= {name: toolbox[name] for name in listed}
            usable.append((query, listed))
        if not usable:
            refusal = "".join(f": {n:,} refused, {why}" for why, n in refused.most_common(1))
            raise InputError(
                f"{source.path} has no query to plan for{refusal}. Give another set, or remove it "
                "from data.toolsets."
            )
        if source.limit is not None and source.limit < len(usable):
            usable = [usable[i] for i in sorted(rng.sample(range(len(usable)), source.limit))]
        listed_tools = {str(query.record.id): names for query, names in usable}
        return cls(source.reader, tuple(query for query, _ in usable), listed_tools, tools)


def _real_tool_names(toolbox: Toolbox) -> list[str]:
    return [name for name in toolbox.names if name != NO_EVIDENCE.name]


#: Maximum number of tools of a toolbox besides ``no_evidence``, unless a query needs more.
MAX_TOOLS = 8
#: Maximum number of waiting queries that ``_add_with_new_tools`` tries for one group.
MAX_TRIED_QUERIES = 64


class ToolsetGroups:
    """Draws groups of at most ``group_size`` queries of a set; a group shares one toolbox.

    A *rival* of a query is a tool that the query does not list, but that is similar to the question
    or to a tool of the query's plan. A group's toolbox has no rival of the group's queries.
    """

    def __init__(self, toolset: Toolset, encoder: Encoder, group_size: int) -> None:
        self._set, self._group_size = toolset, group_size
        self._needed_tools = {
            str(query.record.id): frozenset(query.plan.tools) - {NO_EVIDENCE.name}
            for query in toolset.queries
        }
        self._tool_rows = {name: row for row, name in enumerate(toolset.tools)}
        self._question_rows = {id_: row for row, id_ in enumerate(self._needed_tools)}
        if group_size > 1:
            self._tool_vectors = tool_embeddings(encoder, toolset.tools.values())
            self._question_vectors = unit_embeddings(encoder, [q.query for q in toolset.queries])

    def draw_groups(self, rng: random.Random) -> Iterator[tuple[list[AnnotatedQuery], Toolbox]]:
        """Yield groups of queries with their toolboxes; each query is in exactly one group."""
        shuffled = rng.sample(self._set.queries, len(self._set.queries))
        waiting = {str(query.record.id): query for query in shuffled}
        ids_by_need: dict[frozenset[str], list[str]] = defaultdict(list)
        for id_ in waiting:
            ids_by_need[self._needed_tools[id_]].append(id_)
        while waiting:
            first_id, *candidates = islice(waiting, 1 + MAX_TRIED_QUERIES)
            tools = self._draw_tools(first_id, rng)
            members = [first_id]
            if self._group_size > 1:
                self._add_with_new_tools(members, tools, candidates)
                self._add_without_new_tools(members, tools, ids_by_need, waiting)
            group = [waiting.pop(id_) for id_ in members]
            yield group, Toolbox(self._set.tools[name] for name in rng.sample(tools, len(tools)))

    def _draw_tools(self, id_: str, rng: random.Random) -> list[str]:
        """Return the tools that a query needs, and random other tools that it lists."""
        needed = sorted(self._needed_tools[id_])
        others = [name for name in self._set.listed_tools[id_] if name not in needed]
        count = min(len(others), max(0, MAX_TOOLS - len(needed)))
        # With fewer tools, more queries fit into the group. A query that needs no tool keeps as
        # many tools as possible: its example teaches that none of these tools answers.
        if self._group_size > 1 and needed:
            count = rng.randint(0, count)
        return [*needed, *rng.sample(others, count)]

    def _add_with_new_tools(self, members: list[str], tools: list[str], ids: Sequence[str]) -> None:
        """Add queries and their needed tools to a group, up to ``MAX_TOOLS`` tools."""
        for id_ in ids:
            if len(tools) >= MAX_TOOLS or len(members) == self._group_size:
                return
            new_tools = sorted(self._needed_tools[id_] - set(tools))
            if (
                new_tools
                and len(tools) + len(new_tools) <= MAX_TOOLS
                and self._has_no_rival(id_, tools)
                and all(self._has_no_rival(other, new_tools) for other in members)
            ):
                tools += new_tools
                members.append(id_)

    def _add_without_new_tools(
        self,
        members: list[str],
        tools: Sequence[str],
        ids_by_need: dict[frozenset[str], list[str]],
        waiting: dict[str, AnnotatedQuery],
    ) -> None:
        """Add queries that need no further tools; take turns among the sets of needed tools."""
        needs = [need for need in ids_by_need if need <= set(tools)]

        def is_usable(id_: str) -> bool:
            return id_ in waiting and id_ not in members and self._has_no_rival(id_, tools)

        # Filters are lazy: similarities are computed only until the group is full.
        rows = zip_longest(*(filter(is_usable, ids_by_need[need]) for need in needs))
        in_turn = (id_ for row in rows for id_ in row if id_ is not None)
        members += list(islice(in_turn, self._group_size - len(members)))
        # Omits queries that already have a group, so that later groups do not test them.
        remaining = waiting.keys() - set(members)
        for need in needs:
            ids_by_need[need] = [id_ for id_ in ids_by_need[need] if id_ in remaining]

    def _has_no_rival(self, id_: str, tools: Sequence[str]) -> bool:
        """Return True if none of the tools is a rival of the query ``id_``."""
        other_tools = [tool for tool in tools if tool not in self._set.listed_tools[id_]]
        if not other_tools:
            return True
        vectors = self._tool_vectors[[self._tool_rows[tool] for tool in other_tools]]
        question = self._question_vectors[self._question_rows[id_]]
        if np.any(vectors @ question >= NEEDED_TOOL_SIMILARITY):
            return False
        needed = [self._tool_rows[tool] for tool in self._needed_tools[id_]]
        return not np.any(vectors @ self._tool_vectors[needed].T >= SAME_TOOL_SIMILARITY)


def toolset_examples(
    sources: Sequence[ToolsetSource],
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    *,
    seed: int,
    test_question_keys: Collection[str] = (),
) -> tuple[list[TrainingExample], list[dict[str, Any]]]:
    """Return the examples of all sets, and each set's entry in the manifest.

    TEvo varies only the plan cases and the tools' examples, which are queries of the same set.
    A query is refused if its ``question_key`` is in ``test_question_keys``.
    ``InputError`` if a set cannot be read, or has no usable query.
    """

    def examples_of(toolset: Toolset, copies: int, rng: random.Random) -> Iterator[TrainingExample]:
        neighbours = Neighbours(toolset.queries, encoder) if tevo.samples_queries else None
        groups = ToolsetGroups(toolset, encoder, tevo.queries_per_toolbox)
        count = len(toolset.queries) * copies
        with progress_bar(f"Making examples of {toolset.name}", count) as advance:
            for copy in range(1, copies + 1):
                for queries, toolbox in groups.draw_groups(rng):
                    # Queries become tools' examples only if the toolbox is ``is_changed``.
                    drawn = DrawnToolbox(toolbox, Renaming(), is_changed=tevo.enabled)
                    variation = PromptVariation(toolbox, tevo, neighbours=neighbours)
                    for varied in vary_prompts(queries, drawn, variation, rng):
                        yield from task_examples(varied, ttg, rng, copy)
                    advance(len(queries))

    all_examples: list[TrainingExample] = []
    entries = []
    seen_keys: set[str] = set()
    for number, source in enumerate(sources):
        rng = random.Random(f"{seed}:toolset:{number}")
        refused: Counter[str] = Counter()
        toolset = Toolset.read(source, test_question_keys, seen_keys, rng, refused)
        examples = without_duplicates(examples_of(toolset, source.copies, rng))
        all_examples += examples
        set_reader = READERS[source.reader]
        # A test set in ``measuring`` can still be used to test: its items were not trained on.
        except_test_set = f" except {Path(source.measuring).name}" if source.measuring else ""
        entries.append(
            {
                "reader": source.reader,
                "queries": len(toolset.queries),
                "tools": len(toolset.tools),
                "examples": len(examples),
                "origin": set_reader.origin,
                "licence": set_reader.licence,
                "contaminates": [name + except_test_set for name in set_reader.contaminates],
                "refused": dict(sorted(refused.items())),
            }
        )
    return all_examples, entries
