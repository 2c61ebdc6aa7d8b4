"""How the agent of a job on several hosts gets its key and meets the other agents."""
