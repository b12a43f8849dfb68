"""Recipes: files with all settings of a training set and of its training."""
