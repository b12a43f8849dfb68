"""What Casewright is measured by: one command a file."""
