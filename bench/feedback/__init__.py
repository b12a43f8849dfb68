"""Measures the gain of relevance feedback over one search."""
