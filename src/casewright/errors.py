"""The errors that Casewright raises on purpose.

A message says what was wrong, where, and what to do. The command line prints it, and exits with
code 2.
"""

from __future__ import annotations

import re


class CasewrightError(Exception):
    """Base of all errors raised on purpose by Casewright."""


class InputError(CasewrightError, ValueError):
    """An input is invalid: a question, a context, a setting, a file."""


class FacetError(InputError):
    """A facet could not embed the problem of one of several cases.

    Attributes:
        facet: The facet's name.
        row: The index of the problem, counted from 0.
    """

    def __init__(self, message: str, facet: str, row: int) -> None:
        super().__init__(message)
        self.facet = facet
        self.row = row

    def __reduce__(self) -> tuple[type[FacetError], tuple[str, str, int]]:
        return (type(self), (str(self), self.facet, self.row))


class DependencyError(CasewrightError, ImportError):
    """An optional package is needed, but not installed."""


class StoreError(CasewrightError):
    """An operation of a case store failed."""


class StoreLockedError(StoreError):
    """Another process has locked the store's folder."""


class SchemaMismatchError(StoreError):
    """A collection is opened with another schema than it was built with."""


class StoreDamagedError(StoreError):
    """The store's files cannot be read."""


class DiskFullError(StoreError):
    """The disk of a store or a cache is full or read-only."""


class BusyError(CasewrightError):
    """Too much work is in progress; the same request may succeed later."""


class StoreUnavailableError(StoreError):
    """The Qdrant server does not answer, or refuses a request."""


class ToolError(CasewrightError):
    """A tool's declaration is invalid, or a result of the tool contradicts it."""


class DecodingError(CasewrightError):
    """A model's plan is incomplete, since its time, tokens or positions were used up."""


class PlanError(CasewrightError, ValueError):
    """A plan breaks the plan language or a static check.

    Attributes:
        step: The id of the wrong step, such as ``"s2"``; ``None`` for the whole plan.
        rule: The broken rule, in one sentence.
        mend: The correction to make, in one sentence.
    """

    def __init__(self, rule: str, mend: str, step: str | None = None) -> None:
        self.step = step
        self.rule = rule
        self.mend = mend
        super().__init__(f"{step or 'plan'}: {rule} {mend}")

    def __reduce__(self) -> tuple[type[PlanError], tuple[str, str, str | None]]:
        return (type(self), (self.rule, self.mend, self.step))


class GrammarError(CasewrightError):
    """A grammar of plans could not be built or followed; the message names an alternative."""


# A secret; the group is the text before the secret, which stays in the message.
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
# The user and the password in a URL.
_URL_CREDENTIALS = re.compile(r"://[^\s/]+@")


def one_line(error: BaseException) -> str:
    """Return the class and the message of another library's error in one line, without secrets."""
    line = cleaned(str(error))
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def cleaned(message: str, limit: int = 400) -> str:
    """Return a message in one line of at most ``limit`` characters, without secrets."""
    # Secrets are masked before the cut, since half a secret may not be recognised.
    line = _URL_CREDENTIALS.sub("://***@", " ".join(message.split()))
    return _SECRET.sub(r"\1***", line)[:limit]
