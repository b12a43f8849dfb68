"""Planners that a trained planner is compared with."""
