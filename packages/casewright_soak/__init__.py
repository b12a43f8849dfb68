"""The soak test kills processes, damages files, fills disks, drops clients and sends bad input."""
