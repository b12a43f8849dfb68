"""A recipe: everything that a training set and a training are made with, in one file."""
