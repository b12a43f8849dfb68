"""The Math-24 domain, whose puzzles are to make 24 of four numbers on a card."""
