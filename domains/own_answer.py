"""What a domain adds to ``casewright ask``: options, and its own answers to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, StoreError
from casewright.planner.chat_call import Chat


@dataclass(frozen=True, slots=True)
class Option:
    """An option of ``casewright ask`` that one domain adds.

    Attributes:
        name: Without its dashes.
        help: One sentence.
        metavar: What stands for its value; a flag has none.
    """

    name: str
    help: str
    metavar: str = ""


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request without a question.

    Attributes:
        options: What was given, by the options' names; a flag's value is ``True``.
        chat: A chat model, if one is to answer.
        name: Its name.
    """

    options: Mapping[str, Any]
    chat: Chat | None = None
    name: str = "reuse"

    @property
    def image(self) -> Path:
        """The file of the image.

        Raises:
            InputError: None was given.
        """
        if "image" not in self.options:
            given = ", ".join(f"--{name}" for name in self.options)
            raise InputError(f"Add --image FILE: {given} go with --image alone.")
        return Path(self.options["image"])


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """An answer, ready to be shown.

    Attributes:
        lines: For people, a line each: what was read, the cases, the answer, the check.
        told: For machines, JSON-plain.
        page: As one HTML document with its images.
        right: Whether the answer is proved.
    """

    lines: Sequence[str]
    told: dict[str, Any]
    page: str
    right: bool

    def save_page(self, request: OwnRequest) -> OwnAnswer:
        """Write the page where the option ``html`` says, if it does; return this answer.

        Raises:
            StoreError: It cannot be written.
        """
        if "html" in request.options:
            file = Path(request.options["html"])
            try:
                file.write_text(self.page, encoding="utf-8")
            except OSError as error:
                raise StoreError(f"{file} cannot be written: {error.strerror}.") from error
        return self


#: Those of a domain that answers about an image.
IMAGE_OPTIONS = (
    Option("image", "An image to ask about, without a question.", "FILE"),
    Option("html", "With --image, also write the answer as a page.", "FILE"),
    Option("retain", "With --image, keep an answer that is proved."),
)
