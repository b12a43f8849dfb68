"""A case store as a retriever of LangChain or LlamaIndex."""
