"""CBR-RAG's protocol: retrieval for questions with two parent cases, and answers by cases."""
