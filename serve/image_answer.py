"""`casewright ask --image`: an answer about an image, from a domain that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from casewright.domains import Domain
from casewright.errors import InputError, StoreError

#: Deadline of a chat model's answer, in seconds.
SECONDS = 120.0


def ask_image(
    domain: Domain,
    image: Path,
    generator: str,
    page: Path | None,
    *,
    retain: bool,
    as_json: bool,
) -> None:
    """Answer about an image, and print the answer.

    Args:
        domain: Reads images.
        image: The image's file.
        generator: ``extractive`` for none, or a chat model as ``provider:model``.
        page: Where the answer is written as a page, if anywhere.
        retain: Whether an answer that is proved becomes a case.
        as_json: Whether JSON is printed.

    Raises:
        InputError: The domain reads no images, or the image cannot be used.
    """
    from casewright.serve.output import print_json
    from casewright.serve.place import place_of
    from casewright.stores import default_encoder

    if domain.answer_image is None:
        raise InputError(
            f"The domain {domain.name!r} reads no images. Leave --image out; it goes with "
            "--domain math24."
        )
    chat = _chat(generator)
    opened = domain.open(place_of(domain.name, None), default_encoder(), False)
    try:
        found = domain.answer_image(opened, image, chat, generator, retain=retain)
    finally:
        opened.close()
    if page is not None:
        try:
            page.write_text(found.page, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{page} cannot be written: {error.strerror}.") from error
    if as_json:
        print_json(found.told)
        return
    for line in found.lines:
        typer.echo(line)


def _chat(generator: str) -> Callable[[Sequence[tuple[str, str]]], str] | None:
    from casewright.serve.session import EXTRACTIVE, check_generator

    check_generator(generator)
    if generator == EXTRACTIVE:
        return None
    from casewright.planner import chat_model
    from casewright.planner.chat_call import ask
    from casewright.planner.chat_failure import failure

    model = chat_model(generator)

    def said(messages: Sequence[tuple[str, str]]) -> str:
        try:
            told = ask(model, messages, SECONDS)
        except Exception as error:
            raise InputError(failure(model, error)) from error
        return str(told.text)

    return said
