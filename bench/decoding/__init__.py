"""How plans are decoded, beside transformers' ``generate``."""
