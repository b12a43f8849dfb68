"""Math-24: four numbers on a card become 24."""
