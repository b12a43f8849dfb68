"""How it is reached: the command line."""
