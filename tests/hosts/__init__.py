"""Several hosts on one machine: network namespaces, each with a name, a boot id and a cable of its
own, all plugged into one switch. Root makes them, and so does whoever may make user namespaces.

A tool of the repository, not installed with rdmacoll; it needs Python's library and iproute2.
"""

FORBIDDEN = 77  # exit status of a tool that this user may not use here


class StandError(Exception):
    """Something failed while hosts were made or used; the text says what."""


class NoHosts(StandError):
    """No hosts can be made here; the text says what is missing."""
