"""Public tool-use sets: their queries, each with the tools and the gold plan that it came with."""
