"""The section ``[data]`` of a recipe: sources and settings of a training set."""

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

#: The key of the known domains in pydantic's validation context; without it, any domain is valid.
DOMAINS_KEY = "domains"


class DataSection(Section):
    """``[data]``: how annotated queries and a toolbox become a training set.

    Attributes:
        domain: The domain that has the tools, the queries, and the pools of the tools.
        queries: JSON Lines of annotated queries, instead of the domain's queries.
        toolbox: A JSON file of tools, instead of a domain.
        pools: A JSON file of alternative names and descriptions of tools, instead of the domain's.
        distractors: A JSON file of tools that ``tevo`` adds and that no plan needs.
        copies: Number of prompts for each query.
        validation: Share of the queries, and of the instructions, that is used for validation.
            Similar queries are in the same split.
        seed: The seed of all random draws.
        sampling: The method that chooses queries, and their number.
        tevo: The random variation of the prompts' tools (Tool Evolve).
        ttg: The training tasks that are made from each query (Tool-Task Generator).
        corpus: Toolboxes of other subjects, with their messages.
        toolsets: Public tool-use sets, for training only.
        instructions: Generic instructions.
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
    def _domain_exists(cls, domain: str | None, info: ValidationInfo) -> str | None:
        names: Collection[str] | None = (info.context or {}).get(DOMAINS_KEY)
        if domain is None or names is None or domain in names:
            return domain
        similar = get_close_matches(domain, names, 1)
        domains = ", ".join(sorted(names))
        advice = f"Did you mean {similar[0]}?" if similar else f"Domains are {domains}."
        raise ValueError(f"There is no domain {domain!r}. {advice}")

    @model_validator(mode="after")
    def _has_examples_and_one_toolbox(self) -> Self:
        if not self.ttg.tasks_per_query and not self.instructions.share:
            raise ValueError(
                "The set would be empty: data.ttg.tasks_per_query and data.instructions.share are "
                "both 0. Raise one of them."
            )
        if self.domain is None and self.toolbox is None:
            raise ValueError(
                "The tools to plan with are missing. Write domain, or toolbox and queries."
            )
        if self.domain is not None and self.toolbox is not None:
            raise ValueError("domain and toolbox are both given. Remove one of them.")
        if self.toolbox is not None and self.queries is None:
            raise ValueError(
                "toolbox is given without queries. Add queries, a JSON Lines file of annotated "
                "queries for these tools."
            )
        return self
