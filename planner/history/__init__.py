"""Planning for a question that leans on the turns before it."""

from casewright.planner.history.history_reuse import HistoryReuse
from casewright.planner.history.readings import Reuse

__all__ = ["HistoryReuse", "Reuse"]
