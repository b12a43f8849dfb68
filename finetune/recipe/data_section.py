"""``[data]``: what a training set is made of, and how."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from casewright.finetune.examples.drills import DrillSettings
from casewright.finetune.examples.tevo_settings import TevoSettings
from casewright.finetune.examples.toolset import ToolsetSource
from casewright.finetune.examples.ttg import TtgSettings
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS
from casewright.finetune.instructions.settings import InstructionSettings, InstructionSource
from casewright.finetune.queries.choose import SamplingSettings
from casewright.finetune.recipe.recipe_file import RecipeFile, beside, folder_of, looked_for
from casewright.finetune.recipe.section import Section

#: What a recipe is validated with, where they are known: the names of the domains.
DOMAINS = "domains"


def _there(path: str, info: ValidationInfo) -> str:
    """Return where a source's files are, beside the recipe; the name that one may have instead."""
    found, name = beside(info, path), info.data.get("reader", HUGGING_FACE)
    if found.exists():
        return str(found)
    if name != HUGGING_FACE and looked_for(info):
        raise ValueError(
            f'There is nothing at "{path}" in {folder_of(info)}. Give {READERS[name].files}, of '
            f"{READERS[name].origin}: beside the recipe, or in the folder of --sets."
        )
    return path


class InstructionPlace(InstructionSource):
    """One of ``[[data.instructions.sources]]``; its files are looked for beside the recipe."""

    _path_there = field_validator("path")(_there)


class ToolsetPlace(ToolsetSource):
    """One of ``[[data.toolsets]]``; its files are looked for beside the recipe."""

    _path_there = field_validator("path")(_there)


class InstructionSection(InstructionSettings):
    """``[data.instructions]``: generic instructions, and how many.

    Attributes:
        sources: Where they come from.
        share: Of instructions in the whole set, as in the paper's Table 3; 0 is a set without.
        repeat: Take instructions more than once where there are too few.
    """

    sources: tuple[InstructionPlace, ...] = ()
    share: float = Field(default=0.0, ge=0, lt=1)
    repeat: bool = False

    @field_validator("chat_cache")
    @classmethod
    def _beside(cls, file: str, info: ValidationInfo) -> str:
        return file and str(beside(info, file))

    @model_validator(mode="after")
    def _some_source(self) -> Self:
        if self.share and not self.sources:
            raise ValueError(
                f"share is {self.share:g}, and there are no instructions. Add "
                "[[data.instructions.sources]] with reader and path, or set share = 0."
            )
        return self


class DataSection(Section):
    """``[data]``: from annotated queries and a toolbox to a training set.

    Attributes:
        domain: Whose tools, queries and pools are taken.
        queries: Annotated queries, JSON Lines, instead of the domain's.
        toolbox: A JSON file of tools, instead of a domain.
        pools: A JSON file of other names and descriptions for the tools, instead of the domain's.
        distractors: A JSON file of tools that no plan needs, for TEvo to add.
        copies: How often each query is evolved, each time anew.
        validation: Share of the queries, with their likes, and of the instructions, that is not
            trained on.
        seed: Of all that is drawn.
        sampling: Which queries are taken.
        tevo: How their prompts are varied.
        ttg: Which tasks are made of each.
        toolsets: Public tool-use sets whose queries are planned for, too, each with tools of its
            own; for training alone.
        drills: Invented tools and questions beside them.
        instructions: Generic ones beside them.
    """

    domain: str | None = None
    queries: RecipeFile | None = None
    toolbox: RecipeFile | None = None
    pools: RecipeFile | None = None
    distractors: RecipeFile | None = None
    copies: int = Field(default=1, ge=1, le=1000)
    validation: float = Field(default=0.05, ge=0, lt=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    sampling: SamplingSettings = SamplingSettings()
    tevo: TevoSettings = TevoSettings()
    ttg: TtgSettings = TtgSettings()
    toolsets: tuple[ToolsetPlace, ...] = ()
    drills: DrillSettings = DrillSettings()
    instructions: InstructionSection = InstructionSection()

    @field_validator("domain")
    @classmethod
    def _known(cls, domain: str | None, info: ValidationInfo) -> str | None:
        names: Collection[str] | None = (info.context or {}).get(DOMAINS)
        if domain is None or names is None or domain in names:
            return domain
        near = get_close_matches(domain, names, 1)
        mend = f"Did you mean {near[0]}?" if near else f"Domains are {', '.join(sorted(names))}."
        raise ValueError(f"There is no domain {domain!r}. {mend}")

    @model_validator(mode="after")
    def _one_toolbox(self) -> Self:
        if self.domain is None and self.toolbox is None:
            raise ValueError(
                "Nothing says which tools to plan with. Write domain, or toolbox and queries."
            )
        if self.domain is not None and self.toolbox is not None:
            raise ValueError("domain and toolbox are both given. Remove one of them.")
        if self.toolbox is not None and self.queries is None:
            raise ValueError(
                "toolbox is given without queries. Add queries, a JSON Lines file of annotated "
                "queries for these tools."
            )
        return self
