"""The backgammon domain: it reads a board's picture and advises a play with the help of cases."""
