"""The command line, the service and the page."""
