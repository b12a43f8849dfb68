"""Compares the case store with other systems that search cases with several vectors."""
