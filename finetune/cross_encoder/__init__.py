"""Training of the cross-encoder, which finds the sentence that answers a question."""
