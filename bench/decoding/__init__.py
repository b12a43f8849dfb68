"""The decoding of plans, beside transformers' ``generate``."""
