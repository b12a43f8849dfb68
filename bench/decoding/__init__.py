"""Compares Casewright's decoding of plans with transformers' ``generate``."""
