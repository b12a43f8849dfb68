"""The search for passages of documents."""
