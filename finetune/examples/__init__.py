"""Makes training examples (prompts with completions) from annotated queries."""
