"""The gain of relevance feedback over one search."""
