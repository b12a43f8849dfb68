"""``[data.instructions]`` of a recipe: generic instructions, from where, and how many."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from casewright.finetune.instructions.evolution import MOST_CONSTRAINTS
from casewright.finetune.instructions.readers.hugging_face import check_fields
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS, reader
from casewright.finetune.section import Section, beside, folder_of, looked_for

BY_RULES = "rules"


def _there(path: str, info: ValidationInfo) -> str:
    """Return where a source's files are, beside the recipe; the name that one may have instead."""
    if info.context is None or not path:
        return path
    found, name = beside(info, path), info.data.get("reader", HUGGING_FACE)
    if found.exists():
        return str(found)
    if name != HUGGING_FACE and looked_for(info):
        raise ValueError(
            f'There is nothing at "{path}" in {folder_of(info)}. Give {READERS[name].files}, of '
            f"{READERS[name].origin}: beside the recipe, or in the folder of --sets."
        )
    return path


#: The files that a reader reads, or a data set's name; looked for beside the recipe.
SourcePath = Annotated[str, AfterValidator(_there)]


class InstructionSource(Section):
    """One of ``[[data.instructions.sources]]``.

    Attributes:
        reader: A reader's name; see ``READERS``.
        path: A file or folder, or a data set's name for ``hugging_face``.
        limit: How many to take at most, drawn by the seed; without one, all.
        split: Of a data set by name.
        columns: Of a data set by name: which column is its ``prompt``, ``input`` and ``answer``,
            or its ``messages``.
        licence: Of a data set by name, as its page says; kept in the manifest.
    """

    reader: str
    path: SourcePath = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    split: str = Field(default="train", min_length=1)
    columns: dict[str, str] = Field(default_factory=dict)
    licence: str = ""

    @field_validator("reader")
    @classmethod
    def _known(cls, name: str) -> str:
        reader(name)
        return name

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        named = {"split", "columns", "licence"} & self.model_fields_set
        if named and self.reader != HUGGING_FACE:
            raise ValueError(
                f"{sorted(named)} are settings of the reader {HUGGING_FACE}, not of {self.reader}."
            )
        check_fields(self.columns)
        return self


class InstructionSettings(Section):
    """Which instructions stand beside the plans.

    Attributes:
        sources: Where they come from; none where a training set has no instructions.
        share: The part of what the sources hold that is taken, as in the paper's Table 3 (60,000
            of 147,000 are 40 %): 0 none, 1 all.
        evolved: The share of these that is given constraints.
        by: Who adds them: ``rules``, or a chat model as ``provider:model``.
        constraints: Constraints that rules give to one instruction at most.
        length_bins: Ranges of prompt length that have equal shares.
        max_characters: Longer ones, prompt and answer together, are left out.
        chat_calls: Calls of the chat model at most.
        chat_seconds: Time for all of them together.
        chat_cache: A file in which the chat model's work is kept, so that it goes on where it
            stopped; empty keeps nothing.
        keep_unchecked: Whether instructions whose constraint cannot be verified are kept.
    """

    sources: tuple[InstructionSource, ...] = ()
    share: float = Field(default=0.0, ge=0, le=1)
    evolved: float = Field(default=0.5, ge=0.0, le=1.0)
    by: str = BY_RULES
    constraints: int = Field(default=MOST_CONSTRAINTS, ge=1, le=MOST_CONSTRAINTS)
    length_bins: int = Field(default=8, ge=1, le=1000)
    max_characters: int = Field(default=6000, ge=1)
    chat_calls: int = Field(default=10_000, ge=1)
    chat_seconds: float = Field(default=3600.0, gt=0.0, allow_inf_nan=False)
    chat_cache: str = ""
    keep_unchecked: bool = False

    @field_validator("by")
    @classmethod
    def _nameable(cls, name: str) -> str:
        if name != BY_RULES and not all(name.partition(":")):
            raise ValueError(
                f"{name!r} is neither {BY_RULES!r} nor a chat model. Write provider:model, for "
                "example openai:gpt-4o-mini."
            )
        return name

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
