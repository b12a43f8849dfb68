"""Which queries to learn from: sampling, annotation, writing new ones."""
