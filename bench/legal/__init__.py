"""Retrieval for questions with two parent cases, as in CBR-RAG's protocol."""
