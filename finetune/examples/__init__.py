"""Training examples: annotated queries as prompts and completions."""
