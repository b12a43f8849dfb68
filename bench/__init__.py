"""The benches of Casewright: each measures by its command's options, and returns a report."""
