"""MCBR-RAG's tables on Math-24: retrieval, and answers with and without cases."""
