"""The shopping domain, the worked example of a domain."""
