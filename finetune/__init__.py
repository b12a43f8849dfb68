"""Training of planners, and the scores of plans."""
