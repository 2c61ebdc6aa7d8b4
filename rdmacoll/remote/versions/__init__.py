"""States in versions: published by one process or several, read whole by others."""
