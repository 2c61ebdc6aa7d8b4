"""The parameter server: processes that hold what the ranks of a job share."""
