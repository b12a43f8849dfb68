"""What is known here of the paper's own figures (REAPER, Joshi et al. 2024, arXiv:2407.18553).

The paper's planner is a Mistral-7B, its test 600 closed queries of a shop: another model on other
data, so the figures are no targets. Those of single rows of its tables were not to be had; where
a row has none, none is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's figures of one row.

    Attributes:
        tools: Share of plans with the right tools.
        arguments_paper: And with every argument right, of the plans that it counts.
        only_provided: Share that follows a changed list of tools.
        ms_p50: Milliseconds a plan.
    """

    tools: float | None = None
    arguments_paper: float | None = None
    only_provided: float | None = None
    ms_p50: float | None = None

    def told(self, *, grammar: bool) -> str | None:
        """Return the figures as a cell of a table; nothing where there are none.

        Args:
            grammar: Of a line with the grammar on: instruction following is measured with it off,
                all else as the planner is served.
        """
        told = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and (one.name == "only_provided") != grammar:
                told.append(f"{one.name} {value:g}")
        return ", ".join(told) or None


NOTHING = Published()
#: The whole system: tools and arguments, and the time of a plan.
WHOLE = Published(tools=0.96, arguments_paper=0.92, ms_p50=207.0)
#: Following a changed list of tools, with general instruction data and without.
WITH_INSTRUCTIONS = Published(only_provided=1.0)
WITHOUT_INSTRUCTIONS = Published(only_provided=0.23)
