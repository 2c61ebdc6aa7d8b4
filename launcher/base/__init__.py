"""What rdmarun and its agents share."""
