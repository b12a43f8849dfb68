"""Sampling, annotation and writing of queries to learn from."""
