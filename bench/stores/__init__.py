"""Searching cases of several vectors, beside other ways to do it."""
