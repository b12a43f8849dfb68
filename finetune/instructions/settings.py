"""Settings of a training set's instructions."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from casewright.errors import InputError
from casewright.finetune.instructions.evolution import MOST_CONSTRAINTS
from casewright.finetune.instructions.readers.columns import FIELDS
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, reader
from casewright.finetune.recipe.section import Section

BY_RULES = "rules"


class InstructionSource(Section):
    """Where instructions come from.

    Attributes:
        reader: A reader's name; see ``READERS``.
        path: A file or folder, or a data set's name for ``hugging_face``.
        limit: How many to take at most, drawn by the seed; without one, all.
        split: Of a data set by name.
        columns: Of a data set by name: which column is its ``prompt``, ``input`` and ``answer``,
            or its ``messages``.
        licence: Of a data set by name.
    """

    reader: str
    path: str = Field(min_length=1)
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
    def _own_settings(self) -> InstructionSource:
        named = {"split", "columns", "licence"} & self.model_fields_set
        if named and self.reader != HUGGING_FACE:
            raise InputError(
                f"{sorted(named)} are settings of the reader {HUGGING_FACE}, not of {self.reader}."
            )
        if wrong := sorted(set(self.columns) - set(FIELDS)):
            raise InputError(f"columns: {wrong} are no fields. Map any of {list(FIELDS)}.")
        return self


class InstructionSettings(Section):
    """Which instructions stand beside the plans.

    Attributes:
        sources: Where they come from; none where a training set has no instructions.
        evolved: The share that is given constraints.
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
        provider, _, model = name.partition(":")
        if name != BY_RULES and not (provider and model):
            raise InputError(
                f"{name!r} is neither {BY_RULES!r} nor a chat model. Write provider:model, for "
                "example openai:gpt-4o-mini."
            )
        return name
