"""Opens a domain with a planner as a session, and answers questions in the session."""
