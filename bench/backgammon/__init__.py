"""Measurements on backgammon: retrieval, answers, and the reading of boards off pictures."""
