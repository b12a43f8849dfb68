"""Planning for a question that leans on the turns before it."""

from casewright.planner.history.history_reuse import HistoryReuse

__all__ = ["HistoryReuse"]
