"""The shopping domain: the worked example."""
