"""What tests of the domains share: the opened shop, and calls of its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewright.domains import OpenDomain
from casewright.tools import CallContext

Row = Mapping[str, Any]


def call(
    shop: OpenDomain, tool: str, question: str = "", customer: str | None = None, **given: Any
) -> Sequence[Row]:
    """Call a tool as a step would; ``query`` is the question unless it is given."""
    spec = shop.toolbox[tool]
    if spec.parameter("query") is not None:
        given.setdefault("query", question)
    scope = {} if customer is None else {"customer": customer}
    assert spec.run is not None
    rows: Sequence[Row] = spec.run(given, CallContext(question=question, scope=scope))
    return rows
