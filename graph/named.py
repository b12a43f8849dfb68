"""Generators and judges by name: Casewright's own, those of other packages, and chat models.

An entry point of the group ``casewright.generators`` is a function from an encoder to a
``Generator``; an entry point of ``casewright.judges`` is a function that returns a ``Judge``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from casewright.extensions import check_extension, extension, extensions

if TYPE_CHECKING:
    from casewright.graph.generator import Generator
    from casewright.stores import Encoder
    from casewright.stores.feedback import Judge

#: Name of the generator without a language model, which quotes the evidence.
EXTRACTIVE = "extractive"
#: ``OFFLINE`` is the judge without a language model; ``OFF`` means that there is no judge.
OFFLINE, OFF = "offline", "off"


def check_generator(name: str) -> None:
    """Raise ``InputError`` unless a generator has this name."""
    check_extension("generator", name)


def make_generator(
    name: str,
    encoder: Encoder,
    make_quoting: Callable[[], Generator] | None = None,
    *,
    full: bool = False,
    reads_passages: bool = False,
) -> Generator:
    """Return the generator of this name.

    If a chat model fails, the evidence is quoted. A chat model's sentences are marked if the
    evidence does not support them. ``make_quoting`` makes the domain's quoting generator, if any;
    the default is ``ExtractiveGenerator`` with the options ``full`` and ``reads_passages``.
    """
    check_generator(name)
    quoter: Generator
    if make_quoting:
        quoter = make_quoting()
    else:
        options = {"full": full, "reads_passages": reads_passages}
        # A generator of another package may not take the options.
        set_options = {option: True for option, is_set in options.items() if is_set}
        quoter = extension("generator", EXTRACTIVE)(encoder, **set_options)
    if name == EXTRACTIVE:
        return quoter
    if name in extensions("generator"):
        generator: Generator = extension("generator", name)(encoder)
        return generator
    from casewright.graph.chat_generator import ChatGenerator
    from casewright.planner import chat_model

    return ChatGenerator(chat_model(name), fallback=quoter, marks=True)


def check_judge(name: str | None) -> None:
    """Raise ``InputError`` unless the name is a judge's, ``OFF`` or ``None``."""
    if name is not None:
        check_extension("judge", name, OFF)


def make_judge(name: str) -> Judge:
    """Return the judge of this name."""
    check_extension("judge", name, OFF)
    if name in extensions("judge"):
        judge: Judge = extension("judge", name)()
        return judge
    from casewright.graph.feedback import ChatJudge
    from casewright.planner import chat_model

    return ChatJudge(chat_model(name))
