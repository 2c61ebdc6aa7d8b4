"""The exceptions of Horovod's interface."""


class HorovodInternalError(RuntimeError):
    """An operation has failed: ranks disagree about it, or its group is lost; the words say which.

    What ranks disagree about has moved nothing, and leaves all else as it was. hvd.elastic.run()
    goes on from the last commit after one that a script raises itself, or that a lost rank is the
    cause of.
    """


class RanksLostError(HorovodInternalError):
    """A rank is lost, or has begun anew, and the others do so, too."""


class HostsUpdatedInterrupt(Exception):  # noqa: N818  (its name is Horovod's)
    """Ranks have come, or are about to go; hvd.elastic.run() takes them in and goes on.

    skip_sync: whether the state that ranks hold is that of all, so that it need not be sent.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__()
        self.skip_sync = skip_sync
