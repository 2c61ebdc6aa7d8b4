"""A server answers processes of its user and host that ask what the job's servers do.

It listens on an abstract unix socket; base/listeners.py finds it.
Floor: rdmacoll/servers. Thread: one of its own.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable

from rdmacoll.base.peer_user import peer_of, same_user_or_root

KIND = "rdmacoll-ps"
LOOK_S = 0.5  # between looks whether the server has ended
SEND_TIMEOUT_S = 5.0


def answer_who_asks(status: Callable[[], str], ended: threading.Event) -> None:
    """status: the text of a JobStatus. It may raise: then that is the answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{KIND}/{os.getpid()}/{secrets.token_hex(16)}")
        listener.listen()
        listener.settimeout(LOOK_S)
        while not ended.is_set():
            try:
                asker, _ = listener.accept()
            except TimeoutError:
                continue
            with asker:
                _answer(asker, status)


def _answer(asker: socket.socket, status: Callable[[], str]) -> None:
    try:
        asker.settimeout(SEND_TIMEOUT_S)
        if same_user_or_root(peer_of(asker)[1]):
            asker.sendall(_text(status).encode())
    except OSError:
        pass  # it does not wait any more


def _text(status: Callable[[], str]) -> str:
    try:
        return status()
    except Exception as error:  # the Store may be gone
        return f"the job's Store does not answer: {error}"
