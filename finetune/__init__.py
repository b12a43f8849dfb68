"""How the planner learns, and how plans are scored."""
