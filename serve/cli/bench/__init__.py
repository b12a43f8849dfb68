"""The commands of ``casewright bench``."""
