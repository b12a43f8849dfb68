"""The documents domain: questions about what `casewright ingest` read."""
