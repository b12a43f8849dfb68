"""Parts that the two applications of MCBR-RAG share: Math-24 and backgammon."""
