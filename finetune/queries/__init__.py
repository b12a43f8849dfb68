"""Queries to learn from: sampling, annotation, writing new ones."""
