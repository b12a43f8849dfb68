"""``[data]``: what a training set is made of, and how."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from casewright.finetune.examples.corpus_examples import CorpusSettings
from casewright.finetune.examples.tevo import TevoSettings
from casewright.finetune.examples.toolset import ToolsetSource
from casewright.finetune.examples.ttg import TtgSettings
from casewright.finetune.instructions.mixture import InstructionSettings
from casewright.finetune.queries.choose import SamplingSettings
from casewright.finetune.section import RecipeFile, Section

#: What a recipe is validated with, where they are known: the names of the domains.
DOMAINS = "domains"


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
        corpus: Toolboxes of other fields beside the one that is planned for.
        toolsets: Public tool-use sets whose queries are planned for, too, each with tools of its
            own; for training alone.
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
    corpus: CorpusSettings = CorpusSettings()
    toolsets: tuple[ToolsetSource, ...] = ()
    instructions: InstructionSettings = InstructionSettings()

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
    def _something(self) -> Self:
        if not self.ttg.tasks_per_query and not self.instructions.share:
            raise ValueError(
                "Nothing is learned: data.ttg.tasks_per_query and data.instructions.share are both "
                "0. Raise one of them."
            )
        return self

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
