"""Settings: values, settings file, and tokens of the service."""
