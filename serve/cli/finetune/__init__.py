"""The commands of ``casewright finetune``."""
