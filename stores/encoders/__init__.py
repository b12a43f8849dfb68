"""Encoders of texts: packaged models, sentence-transformers models, other libraries' encoders."""
