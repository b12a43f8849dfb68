"""Domain, planner, generator and scope of a question."""
