"""The command line, the HTTP service and its web page."""
