"""Vector engines: Qdrant in memory, in a folder, on a server."""
