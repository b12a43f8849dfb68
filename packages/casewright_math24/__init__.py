"""The Math-24 domain: a puzzle is to make 24 of the four numbers on a card."""
