"""The benchmarks of Casewright. Each takes its command's options, and returns a report."""
