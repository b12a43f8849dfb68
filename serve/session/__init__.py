"""Sessions: an open domain with planner, generator and scope."""
