"""The settings, the file that sets them, and the tokens of the service."""
