"""Settings: their values, their file, the tokens of the service."""
