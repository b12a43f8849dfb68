"""RAGSys's study on TruthfulQA: what six retrievers of demonstrations do to a model."""
