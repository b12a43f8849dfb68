"""Generators and judges by name: ours, those of other packages, and chat models.

An entry point of the group ``casewright.generators`` names what makes a ``Generator``, given the
encoder; one of ``casewright.judges`` what makes a ``Judge``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from casewright.extensions import check_extension, extension, extensions

if TYPE_CHECKING:
    from casewright.graph.generator import Generator
    from casewright.stores import Encoder
    from casewright.stores.feedback import Judge

#: The generator, and the judge, that need no language model; and no judge at all.
EXTRACTIVE, OFFLINE, OFF = "extractive", "offline", "off"


def check_generator(name: str) -> None:
    """Raise ``InputError`` where no generator has this name, before anything is opened."""
    check_extension("generator", name)


def make_generator(
    name: str, encoder: Encoder, own: Callable[[], Generator] | None = None
) -> Generator:
    """Return the generator of this name; a chat model falls back to one that quotes.

    Args:
        name: The generator's.
        encoder: Ranks the sentences that are quoted.
        own: Makes what quotes the evidence of this domain, where it has its own.

    Raises:
        InputError: There is no such generator or model.
    """
    check_generator(name)
    quoting: Generator = extension("generator", EXTRACTIVE)(encoder) if own is None else own()
    if name == EXTRACTIVE:
        return quoting
    if name in extensions("generator"):
        made: Generator = extension("generator", name)(encoder)
        return made
    from casewright.graph.chat_generator import ChatGenerator
    from casewright.planner import chat_model

    return ChatGenerator(chat_model(name), fallback=quoting)


def check_judge(name: str | None) -> None:
    """Raise ``InputError`` where no judge has this name; without one there is nothing to judge."""
    if name is not None:
        check_extension("judge", name, OFF)


def make_judge(name: str) -> Judge:
    """Return the judge of this name.

    Raises:
        InputError: There is no such judge or chat model.
    """
    check_judge(name)
    if name in extensions("judge"):
        made: Judge = extension("judge", name)()
        return made
    from casewright.graph.feedback import ChatJudge
    from casewright.planner import chat_model

    return ChatJudge(chat_model(name))
