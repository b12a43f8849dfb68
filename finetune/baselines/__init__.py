"""A planner with classifiers, as a baseline for planners with language models."""
