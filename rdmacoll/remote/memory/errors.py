"""What goes wrong with other processes' memory."""


class PeerError(ConnectionError):
    """The other process has ended, or cannot be reached any more. Nothing else fails with it."""


class RevokedError(PeerError):
    """The owner has taken back what this process had open there; it may be opened anew."""
