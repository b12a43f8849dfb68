"""What every section of a recipe is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section: settings that are checked when they are read, and do not change.

    A name that is not known is refused: a misspelt setting would pass for its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
