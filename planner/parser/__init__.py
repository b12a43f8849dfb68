"""The plan parser, a trained network that reads a toolbox and a message and writes a plan."""
