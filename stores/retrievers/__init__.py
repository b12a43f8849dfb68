"""Case stores as retrievers of LangChain and LlamaIndex."""
