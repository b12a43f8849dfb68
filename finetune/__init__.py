"""The training and evaluation of planners and other models, and the data for both."""
