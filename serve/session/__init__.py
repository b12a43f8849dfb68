"""Sessions: open domains with planner, generator and scope."""
