"""Plans for requests that bring tools along which the domain's reader was not trained for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from casewright.errors import InputError
from casewright.planner.ask_reuse import AskReuse
from casewright.planner.parser_planner import ParserReuse
from casewright.planner.reader import Reader
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reading, valid_readings
from casewright.tools import NO_EVIDENCE


class NewcomerReuse:
    """Reads requests by a reader; by the plan parser where its plan calls a tool that this lacks.

    A reader chooses among the plan templates that it was trained on, which call no other tool.

    Args:
        reader: Trained for a domain's own tools.
    """

    def __init__(self, reader: Reader) -> None:
        self._own = AskReuse(reader)
        self._known = {NO_EVIDENCE.name, *(tool for ask in reader.asks for tool in ask.tools)}

    @cached_property
    def _parser(self) -> ParserReuse:
        # It knows a tool by its description: examples of others would draw it to these.
        return ParserReuse(None)

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first; see ``Reuse``."""
        newcomers = set(request.toolbox.names) - self._known
        reading = self._parsed(request) if newcomers else None
        if reading is not None and newcomers.intersection(reading.plan.tools):
            yield reading
        yield from self._own.readings(request)

    def _parsed(self, request: PlanRequest) -> Reading | None:
        # Of more tools than the parser reads, those of the reader are planned with.
        with suppress(InputError):
            return next(valid_readings(self._parser, request), None)
        return None
