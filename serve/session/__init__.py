"""What a question is answered with: a domain, a planner, a generator, and who asks."""
