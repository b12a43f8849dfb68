"""How long a plan in one call takes, beside an agent that is asked for one step at a time."""
