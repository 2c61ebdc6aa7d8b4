"""The allocation that rdmarun was started in: what batch systems say of its hosts and slots."""
