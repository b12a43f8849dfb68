"""The soak test: killed processes, damaged files, full disks, lost clients, and hostile input."""
