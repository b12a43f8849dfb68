"""The Math-24 domain: to make 24 of four numbers on a card."""
