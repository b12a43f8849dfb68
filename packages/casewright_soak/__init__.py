"""A campaign of kills, damaged files, full disks, clients that disconnect, and hostile input."""
