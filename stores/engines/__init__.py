"""Where vectors are kept and searched: Qdrant in memory, in a folder, on a server."""
