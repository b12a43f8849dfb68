"""Every error that Casewright raises on purpose.

One small hierarchy, by meaning. A message says what was wrong, where, and what to do;
the command line prints it as it is and exits with code 2.
"""

from __future__ import annotations

import re


class CasewrightError(Exception):
    """Base of all errors raised on purpose by Casewright."""


class InputError(CasewrightError, ValueError):
    """A caller gave something unusable: a question, a context, a setting, a file."""


class FacetError(InputError):
    """A facet could not embed one of the problems that it was given.

    Attributes:
        facet: The facet's name.
        row: Which of the problems, counted from 0.
    """

    def __init__(self, message: str, facet: str, row: int) -> None:
        super().__init__(message)
        self.facet = facet
        self.row = row

    def __reduce__(self) -> tuple[type[FacetError], tuple[str, str, int]]:
        return (type(self), (str(self), self.facet, self.row))


class DependencyError(CasewrightError, ImportError):
    """An optional package is needed for what was asked, and is not installed."""


class StoreError(CasewrightError):
    """A case store could not do what was asked of it."""


class StoreLockedError(StoreError):
    """Another process holds the store's folder."""


class SchemaMismatchError(StoreError):
    """The collection was built with another schema than the one it is opened with."""


class StoreDamagedError(StoreError):
    """The store's files cannot be read."""


class DiskFullError(StoreError):
    """The disk of a store or a cache has too little room, or cannot be written to."""


class BusyError(CasewrightError):
    """All places for work are taken; what was asked for can be asked for again later."""


class StoreUnavailableError(StoreError):
    """The Qdrant server does not answer, or refuses."""


class ToolError(CasewrightError):
    """A tool was declared wrongly, or returned what it had not declared."""


class DecodingError(CasewrightError):
    """A model did not write its plan to the end: out of time, of tokens, or of positions."""


class PlanError(CasewrightError, ValueError):
    """A plan that breaks the plan language or a static check.

    Attributes:
        step: The step it concerns, for example ``"s2"``; ``None`` for the plan as a whole.
        rule: The rule that was broken, as one sentence.
        mend: What to write instead, as one sentence.
    """

    def __init__(self, rule: str, mend: str, step: str | None = None) -> None:
        self.step = step
        self.rule = rule
        self.mend = mend
        super().__init__(f"{step or 'plan'}: {rule} {mend}")

    def __reduce__(self) -> tuple[type[PlanError], tuple[str, str, str | None]]:
        return (type(self), (self.rule, self.mend, self.step))


class GrammarError(CasewrightError):
    """A grammar of plans could not be made or followed; the message says what to use instead."""


# What introduces a secret, kept, and the secret, masked.
_SECRET = re.compile(
    r"""(?ix)
    (   (?:key|token|secret|password|passwd|pwd|bearer|authorization)
        [\\"']*\s*[:=]\s*[\\"']*(?:(?:bearer|basic)\s+)?        # OPENAI_API_KEY=, "api_key": "
      | \b(?:key|token|secret|password|bearer)
        [-_ ]+(?:provided[:=\s]+)?["']?                          # Bearer, API key provided:
      | (?<![a-z0-9])(?:[sp]k[-_]|(?:gsk|hf)_(?=[a-z0-9]{12}))   # keys known by their form
    )
    [^\s\\"'&,;(){}\[\]<>]{6,}
    """
)
# User and password of an address.
_USER = re.compile(r"://[^\s/]+@")


def told(error: BaseException) -> str:
    """Return the message of another library's error, in one line, without secrets."""
    line = cleaned(str(error))
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def cleaned(message: str, limit: int = 400) -> str:
    """Return a message in one line of bounded length, without secrets."""
    # Masked before it is cut: half a secret may not look like one.
    line = _USER.sub("://***@", " ".join(message.split()))
    return _SECRET.sub(r"\1***", line)[:limit]
