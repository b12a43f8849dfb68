"""Readers of instruction data: one a published format, and data sets by name."""
