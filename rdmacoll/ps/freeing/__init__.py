"""Which tables are no more: what servers, and workers, tell each other of it in the job's Store."""
