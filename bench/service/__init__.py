"""What serving over HTTP costs beside the bare graph, and whether it lasts."""
