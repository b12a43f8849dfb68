"""A campaign: kills, damaged files, full disks, clients that go, hostile input."""
