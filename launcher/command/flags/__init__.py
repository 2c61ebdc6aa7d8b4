"""Options of rdmarun by what they are about, and the words for those that other launchers have."""
