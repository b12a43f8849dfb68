"""Training an adapter: by a recipe that ships, and by TRL's defaults."""
