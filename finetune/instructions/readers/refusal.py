"""Why a record makes no instruction."""

from __future__ import annotations


class Unfit(Exception):  # noqa: N818 - no error: it is caught, and counted
    """A record that does not fit; its text is the reason, the same for all of its kind."""
