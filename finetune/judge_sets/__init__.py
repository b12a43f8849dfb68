"""Labelled questions for the offline judge: paragraphs, abstracts and code, in two halves."""
