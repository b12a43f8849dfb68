"""Encoders of texts: the packaged model, models by name, and other libraries' encoders."""
