"""Stands in for ssh between the hosts: `ssh FOLDER [options] HOST COMMAND...`.

FOLDER/HOST holds the process id of the host's keeper. As ssh it dials port 22 first, so that a host
that cannot be reached is not reached by it either; that nobody listens there is answer enough. The
command gets a fresh environment and a session of its own, and outlives this process.

Floor: tests.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

from hosts.enter import enter

TAKES_A_VALUE = frozenset("BbcDEeFIiJLlmOoPpQRSWw")
CONNECT_TIMEOUT_S = 10.0
FAILED = 255


def fail(text: str) -> None:
    print(f"ssh: {text}", file=sys.stderr)
    sys.exit(FAILED)


def host_and_command(arguments: list[str]) -> tuple[str, str]:
    words = list(arguments)
    while words[0].startswith("-"):
        option = words.pop(0)
        if len(option) == 2 and option[1] in TAKES_A_VALUE:
            words.pop(0)
    return words[0], " ".join(words[1:])


def dial(name: str) -> None:
    try:
        socket.create_connection((name, 22), timeout=CONNECT_TIMEOUT_S).close()
    except ConnectionRefusedError:
        pass
    except OSError as error:
        fail(f"connect to host {name} port 22: {error}")


def login_environment() -> dict[str, str]:
    """What sshd gives, and what Debian's ssh sends along."""
    kept = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG")
    return {name: v for name, v in os.environ.items() if name in kept or name.startswith("LC_")}


def main(folder: str, *arguments: str) -> None:
    name, command = host_and_command(list(arguments))
    keeper = Path(folder, name)
    if not keeper.is_file():
        fail(f"Could not resolve hostname {name}: Name or service not known")
    dial(name)
    pid, home = int(keeper.read_text()), os.environ.get("HOME", "/")
    login = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=home if os.path.isdir(home) else "/",
        env=login_environment(),
        start_new_session=True,
        preexec_fn=lambda: enter(pid),
    )
    status = login.wait()
    sys.exit(status if status >= 0 else FAILED)
