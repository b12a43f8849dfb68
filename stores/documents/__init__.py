"""Conversion of documents and source code to cases."""
