"""CBR-RAG's protocol: questions with two parent cases, and answers with cases as context."""
