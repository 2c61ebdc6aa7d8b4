"""The key that the agents of a job prove to each other, and the job's secret."""
