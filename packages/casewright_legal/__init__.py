"""Legal question answering from decided cases (CBR-RAG, Wiratunga et al. 2024)."""
