"""Documents and source code become cases."""
