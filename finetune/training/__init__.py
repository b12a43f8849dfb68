"""Training a planner: a base model, LoRA, what is saved with it."""
