"""The decoding of plans by Casewright and by transformers' ``generate``."""
