"""The star: the agents of several hosts talk to agent 0, over signed TCP connections."""
