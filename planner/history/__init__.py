"""Planning for a question that depends on the turns before it."""

from casewright.planner.history.follow_up import HistoryReuse

__all__ = ["HistoryReuse"]
