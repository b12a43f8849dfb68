"""Training the plan parser on toolboxes for many subjects."""
