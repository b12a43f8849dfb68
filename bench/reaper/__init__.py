"""REAPER's tables (Joshi et al. 2024, section 4) at a small model's size, each row a training."""
