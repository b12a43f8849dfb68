"""The HTTP service: its own routes, LangServe's beside them, and who may ask."""
