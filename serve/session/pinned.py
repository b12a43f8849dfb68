"""Opening of a domain for a pinned plan, without a planner, and parsing of parameter values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.planner import PinnedPlan, Planner
    from casewright.serve.session.choice import Choice
    from casewright.serve.session.session import Session


def open_without_planner(
    choice: Choice, planner: Planner, opening: Mapping[str, str] | None = None
) -> Session:
    """Open the domain of a choice with an existing planner; see ``open_session``."""
    from casewright.serve.session.session import Session, open_domain, with_feedback
    from casewright.stores.encoders.sources import named_encoder

    domain, encoder = choice.domain, named_encoder(choice.encoder)
    opened = open_domain(domain, encoder, choice.encoder, opening)
    try:
        return Session(domain, with_feedback(opened, domain, choice.feedback), planner, encoder)
    except BaseException:
        opened.close()
        raise


def read_pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the values in an option's ``NAME=VALUE`` texts; raise ``InputError`` for others."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise InputError(f"{option} {text:.80} has no value. Write NAME=VALUE.")
        if name in pairs:
            raise InputError(f"{option} gives {name:.80} twice. Give it once.")
        pairs[name] = value
    return pairs


def json_or_text(text: str) -> Any:
    """Return the text, number or boolean that a JSON value denotes, or else the value as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | int | float) else text


def read_values(pinned: PinnedPlan, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of ``--with``, converted to the types of a pinned plan's parameters."""
    return {
        name: value if isinstance(pinned.parameters.get(name), str) else json_or_text(value)
        for name, value in read_pairs("--with", texts).items()
    }
