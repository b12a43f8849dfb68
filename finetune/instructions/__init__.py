"""Generic instruction data, and its evolution."""
