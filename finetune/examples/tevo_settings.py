"""How far the prompts of Tool Evolve are from those that serving renders."""

from __future__ import annotations

from pydantic import Field

from casewright.finetune.section import Section
from casewright.finetune.shots import NEAREST


class TevoSettings(Section):
    """How far prompts are from the one that serving renders; each share is a probability.

    Attributes:
        enabled: Whether anything but the plan cases in the tail varies.
        unchanged: Of a prompt, to keep the toolbox that serving shows.
        drop_tools: Of a changed prompt, to show a random subset of the tools that it does not need.
        rename_tools: Of a tool, to be renamed.
        rename_parameters: Of a parameter, to be renamed.
        rename_results: Of a result field, to be renamed wherever it is returned.
        reword: Of a description, to be one of the pool's.
        examples: Of a tool's fixed example, to be a sampled query of that tool alone.
        no_example: Of a tool, to be shown without an example.
        distractors: At most how many tools of other domains are added, where there are any.
        shots: At most how many plan cases the tail shows; how many is drawn.
        random_shots: Of a plan case, to be any other query's, and none of those most alike.
        queries_per_toolbox: At most how many queries are posed under one drawn toolbox, so that
            their prompts have one head, which a training computes once.
    """

    enabled: bool = True
    unchanged: float = Field(default=0.2, ge=0, le=1)
    drop_tools: float = Field(default=0.7, ge=0, le=1)
    rename_tools: float = Field(default=0.5, ge=0, le=1)
    rename_parameters: float = Field(default=0.3, ge=0, le=1)
    rename_results: float = Field(default=0.3, ge=0, le=1)
    reword: float = Field(default=0.5, ge=0, le=1)
    examples: float = Field(default=0.5, ge=0, le=1)
    no_example: float = Field(default=0.1, ge=0, le=1)
    distractors: int = Field(default=0, ge=0)
    shots: int = Field(default=4, ge=0, le=NEAREST)
    random_shots: float = Field(default=0.25, ge=0, le=1)
    queries_per_toolbox: int = Field(default=1, ge=1, le=256)
