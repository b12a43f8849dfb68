"""Training the plan parser on toolboxes of many fields."""
