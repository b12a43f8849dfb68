"""Readers of public tool-use sets; each query has its own toolbox, and a gold plan."""
