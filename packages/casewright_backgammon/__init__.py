"""Backgammon: a board's picture, cases of analysed decisions, a checked analysis."""
