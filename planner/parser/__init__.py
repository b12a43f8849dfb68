"""A trained plan parser for which the toolbox is an input: it plans for tools it never saw."""
