"""Texts become vectors: the packaged model, models by name, those of other libraries."""
