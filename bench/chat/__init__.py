"""Planning by a chat model over HTTP, measured."""
