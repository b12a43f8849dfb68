"""Planning where a request brings tools along that the domain's reader was not trained for."""

from __future__ import annotations

from functools import cached_property

from casewright.planner.case_planner import CasePlanner
from casewright.planner.parser_planner import ParserPlanner
from casewright.planner.reader import Reader
from casewright.planner.request import PlanRequest, PlanResult
from casewright.tools import NO_EVIDENCE


class ReaderOrParserPlanner:
    """Plans by a reader; by the plan parser where its plan calls a tool that the reader lacks.

    A reader chooses among the plan templates that it was trained on, which call no other tool.

    Args:
        reader: Trained for a domain's own tools.
    """

    name = CasePlanner.name

    def __init__(self, reader: Reader) -> None:
        self._own = CasePlanner(None, reader)
        self._known = {NO_EVIDENCE.name, *(tool for ask in reader.asks for tool in ask.tools)}

    @cached_property
    def _parser(self) -> ParserPlanner:
        # It knows a tool by its description: examples of others would draw it to these.
        return ParserPlanner()

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the best plan; see ``Planner``."""
        newcomers = set(request.toolbox.names) - self._known
        if newcomers and not request.history:
            result = self._parser.plan(request)
            if not result.fallback and newcomers.intersection(result.plan.tools):
                return result
        return self._own.plan(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes some milliseconds and does not wait for anything."""
        return self.plan(request)
