"""Planning for questions that depend on earlier turns."""

from casewright.planner.history.follow_up import HistoryReuse

__all__ = ["HistoryReuse"]
