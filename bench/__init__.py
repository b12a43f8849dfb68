"""Casewright's benchmarks: for each command, a function takes the options and returns a report."""
