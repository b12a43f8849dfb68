"""What a second reader said of the annotated plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError

#: That of the corpus that ships.
FILE = Path(__file__).parent / "second_reading.jsonl"


class Reading(BaseModel):
    """One message, read again.

    Attributes:
        id: The message's.
        verdict: The plan was right, was mended, or the message was taken out.
        why: What was wrong.
        plan: The plan before it was mended.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    verdict: Literal["right", "mended", "dropped"]
    why: str = ""
    plan: str = ""

    @property
    def toolbox(self) -> str:
        """The toolbox of the message, which is its id without its number."""
        return self.id.rpartition("-")[0]


def read_second_reading(file: Path = FILE) -> Sequence[Reading]:
    """Read the rows of a second reading, JSON Lines.

    Raises:
        InputError: The file cannot be read, or a line has another form; names the line.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Reading.model_validate_json(line))
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise InputError(
                f"{file}, line {number}: {message}. A line is an object of id, verdict (right, "
                "mended or dropped), why and plan."
            ) from error
    return found
