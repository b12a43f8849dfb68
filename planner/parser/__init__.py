"""A trained plan parser, which takes the toolbox as an input: it also plans for unknown tools."""
