"""The code domain: questions about a source tree."""
