"""Training of a planner: its base model, LoRA adapter, checkpoints and model cards."""
