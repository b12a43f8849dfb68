"""Code shared by the two applications of MCBR-RAG, Math-24 and backgammon."""
