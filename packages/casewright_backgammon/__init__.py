"""The backgammon domain: from the picture of a board to a checked analysis, by analysed cases."""
