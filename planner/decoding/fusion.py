"""A prior over the tools of a plan, added to the model's logits where it chooses one.

Shallow fusion (Gulcehre et al. 2015, section 4.1): ``log p_model + weight * log p_prior``. Only the
tokens of tools' names, and those by which a plan ends or goes on, are chosen so; arguments are the
model's alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.choice import greedy

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import TokenModel

#: Share that is left to what the prior does not know, and one that does not count beside it.
FLOOR, LEAST = 0.02, 5e-4
#: Only so many of the model's likeliest tokens are weighed where any text may be written.
SHORTLIST = 64

_CALLED = re.compile(r"^s\d+ = (\w+)\(", re.MULTILINE)
#: A last line that has no call yet: what there is of its tool's name.
_NAMED = re.compile(r"(?:^|\n)(?:s(?:\d+(?: (?:= ?(\w*))?)?)?)?$")


class FusedMatcher:
    """A matcher whose plan's tools a prior speaks for; to be chosen from by ``fused``.

    Args:
        matcher: Says what may be written.
        model: Whose tokens.
        shares: Sequences of tools, each with its share; together 1, or nothing.
        weight: Of the prior's logarithm beside that of the model.
    """

    def __init__(
        self,
        matcher: Matcher,
        model: TokenModel,
        shares: Mapping[tuple[str, ...], float],
        weight: float,
    ) -> None:
        self._matcher = matcher
        self._model = model
        self._shares = {tools: share for tools, share in shares.items() if share >= LEAST}
        self._weight = weight
        self._text = ""

    def forced(self) -> list[int]:
        """As ``Matcher.forced``."""
        tokens = self._matcher.forced()
        self._text += self._model.decode(tokens)
        return tokens

    def allowed(self) -> NDArray[np.intp]:
        """As ``Matcher.allowed``."""
        return self._matcher.allowed()

    def consume(self, token: int) -> None:
        """As ``Matcher.consume``."""
        self._matcher.consume(token)
        self._text += self._model.decode([token])

    @property
    def finished(self) -> bool:
        """As ``Matcher.finished``."""
        return self._matcher.finished

    def choose(self, logits: NDArray[np.float32]) -> int:
        """Return the likeliest token by model and prior together, by the vocabulary's logits."""
        if not self._shares or not self._decides():
            return greedy(logits, self._matcher)
        allowed = self._matcher.allowed()
        if len(allowed) > SHORTLIST:
            likeliest = np.argpartition(logits[allowed], -SHORTLIST)[-SHORTLIST:]
            allowed = allowed[np.sort(likeliest)]
        prior = np.array([self._log_share(int(token)) for token in allowed])
        return int(allowed[np.argmax(logits[allowed] + self._weight * prior)])

    def _decides(self) -> bool:
        """Whether what comes next is a tool's name, or the end of a call."""
        return self._text.endswith(")") or _NAMED.search(self._text) is not None

    def _log_share(self, token: int) -> float:
        """Return the logarithm of the share of the sequences that a token leaves possible."""
        if token in self._model.ends:
            tools = tuple(_CALLED.findall(self._text))
            return _log(share for own, share in self._shares.items() if own == tools)
        text = self._text + self._model.decode([token])
        tools = tuple(_CALLED.findall(text))
        size, named = len(tools), _NAMED.search(text)
        return _log(
            share
            for own, share in self._shares.items()
            if own[:size] == tools
            and (named is None or (len(own) > size and own[size].startswith(named[1] or "")))
        )


def _log(shares: Iterable[float]) -> float:
    return math.log(FLOOR + math.fsum(shares))


def fused(logits: NDArray[np.float32], matcher: Matcher) -> int:
    """Return the token that a ``FusedMatcher`` chooses, and of any other the likeliest."""
    if isinstance(matcher, FusedMatcher):
        return matcher.choose(logits)
    return greedy(logits, matcher)
