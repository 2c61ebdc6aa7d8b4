"""What other processes and users can do to `rdmacoll debug`: they listen under names like those of
ranks, answer with any content, and give names that are paths.
"""

import argparse
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from made_dumps import collective, dump_of, moved, text_of
from other_user import acting, in_user_namespace

from rdmacoll.base.listeners import listening
from rdmacoll.base.peer_user import is_ambiguous, same_user
from rdmacoll.base.printable import printable
from rdmacoll.debug.ask import KIND, Asked, ask_all
from rdmacoll.debug.command import _keep
from rdmacoll.debug.dumps import BadDump, parse
from rdmacoll.debug.processes import number_of
from rdmacoll.debug.text import lines

SECONDS = 20.0  # a call ends earlier unless somebody does not answer


@contextmanager
def a_rank(text: str) -> Iterator[None]:
    """Listens as a rank of this process does, and answers with the text."""
    name = f"\0rdmacoll-debug/{os.getpid()}/{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()

        def serve() -> None:
            try:
                while True:
                    with listener.accept()[0] as client:
                        client.sendall(text.encode())
            except OSError:
                pass  # it is over

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def found(seconds: float = SECONDS) -> list[Asked]:
    return ask_all({os.getpid()}, seconds)


@pytest.mark.parametrize(
    "name",
    [b"\xff\xfe rdmacoll", b"rdmacoll-debug/\xff/1", b"rdmacoll-debug/first/2", b"rdmacoll-debug/"],
)
def test_a_malformed_name_hides_no_rank(name: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as squatter, a_rank(text_of(0, 1)):
        squatter.bind(b"\0" + name)
        squatter.listen()
        assert [one.problem for one in found()] == [""]


def test_names_are_found_among_all_others() -> None:
    name = b"rdmacoll-debug/17/" + b"0a" * 16
    row = b"0000000000000000: 00000002 00000000 00010000 0001 01 28423 @"
    other = row + b"/tmp/\xff\x80 \xc3\n" + row + b"rdmacoll-debug/17/0\n" + row[:-2] + b"\n"
    names = b"Num RefCount\n" + other + row + name + b"\n" + row + name + b"\n"
    assert listening(KIND, names) == [(name, 17)]


# Each listens under a name of its own, with a full queue, and accepts nobody.
SQUATTERS = """
keep = []
for i in range(200):
    name = f"\\0rdmacoll-debug/{pid}/{secrets.token_hex(16)}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(0)
    keep.append(listener)
    for _ in range(2):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(name)
        except BlockingIOError:
            pass
        keep.append(client)
"""


def test_many_who_answer_nobody_hide_no_rank() -> None:
    """All are asked at once: in turn they would take longer than a test may."""
    with a_rank(text_of(0, 1)), acting("pid = 1" + SQUATTERS):
        assert [one.problem for one in found(seconds=5.0)] == [""]


def test_another_user_under_such_a_name_is_not_heard() -> None:
    script = f"""
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0rdmacoll-debug/{os.getpid()}/{secrets.token_hex(16)}")
listener.listen()
def serve():
    while True:
        listener.accept()[0].sendall({text_of(0, 1)!r}.encode())
threading.Thread(target=serve, daemon=True).start()
"""
    with acting(script):
        assert [one for one in ask_all(None, SECONDS) if one.pid == os.getpid()] == []


def test_in_a_namespace_without_a_map_nobody_is_this_user() -> None:
    code = "import os; from rdmacoll.base.peer_user import *; print(same_user(os.geteuid()))"
    done = in_user_namespace(code)
    assert done.stdout == "False\n", done
    assert same_user(os.geteuid())
    assert not same_user(os.geteuid() + 1)
    assert not is_ambiguous(0)


def test_in_a_namespace_without_a_map_the_agent_lets_nobody_in() -> None:
    code = """
import selectors, socket
from rdmacoll.launcher.agent.rank_env import Attempt, Master
from rdmacoll.launcher.agent.rendezvous import Rendezvous
selector = selectors.DefaultSelector()
attempt = Attempt(0, Master("127.0.0.1", 1), b"s" * 32)
nobody = lambda pid: None
callers = lambda pid: 0, nobody, nobody
agent = Rendezvous(range(1), 1, attempt, *callers, selector, nobody)
rank = socket.socket(socket.AF_UNIX)
rank.connect("\\0" + agent.address[1:])
for key, _ in selector.select():
    key.data()
print(rank.recv(1))
"""
    done = in_user_namespace(code)
    assert done.stdout == "b''\n", done


def test_control_characters_are_spelled_out() -> None:
    assert printable("Grüße, 日本語: 'no memory'") == "Grüße, 日本語: 'no memory'"
    assert printable("\033[2J\r\n\a") == "\\x1b[2J\\x0d\\x0a\\x07"
    assert printable("\x9b31m\u202e\udcff") == "\\xc2\\x9b31m\\xe2\\x80\\xae\\xed\\xb3\\xbf"
    assert printable("x" * 5000) == "x" * 2048 + "..."
    assert printable("ab\033", 5) == "ab..."


def test_the_tables_show_no_control_characters() -> None:
    evil = "\033[2Jgone\u202e"
    data = json.loads(text_of(0, 1, collective(1, algorithm=evil), failure=evil + "\n  rank 1"))
    data |= {"host": evil, "reason": evil}
    data["groups"][0] |= {"name": evil, "reach": evil}
    dump = parse(json.dumps(data))
    text = "\n".join(lines([dump]))
    assert "\033" not in text and "\u202e" not in text
    assert "\\x1b[2Jgone" in text
    assert "\n  rank 1" in text  # a report has several lines
    assert "\033" not in dump.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"rank": "../../x"},
        {"rank": True},
        {"pid": 1.5},
        {"host": 3},
        {"clock_ns": 10**400},
        {"groups": [{"id": 1, "name": "0", "rank": 0, "ranks": []}]},
        {"groups": {"id": 1}},
        {"groups": [7]},
        {"in_flight": [collective(1, "\033")]},
        {"in_flight": [collective(1, "running", bytes="x")]},
        {"in_flight": [moved(1, "send", "running") | {"peer": 7}]},
        {"in_flight": [{}]},
        {"ended": None},
    ],
)
def test_a_malformed_dump_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadDump):
        parse(json.dumps({**json.loads(text_of(0, 2)), **changes}))


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 10_000, '{"format": ' + "9" * 5000 + "}"])
def test_json_that_python_cannot_parse_is_refused(text: str) -> None:
    with pytest.raises(BadDump):
        parse(text)


def test_a_host_name_leads_out_of_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = json.dumps({**json.loads(text_of(0, 1)), "host": "/../../" + "evil" * 100})
    asked = [Asked(5, {}, text, parse(text), "")]
    _keep(argparse.Namespace(out=out), asked)
    [path] = out.iterdir()
    assert path.name.startswith("rdmacoll-rank0-_.._.._evil") and len(path.name) < 120
    assert list(tmp_path.iterdir()) == [out]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["²", "-1", "9" * 30, "x", "", " 1", "1_0"])
def test_a_malformed_rank_in_an_environment_is_none(text: str) -> None:
    assert number_of({"RANK": text}, "RANK") is None
    assert number_of({"RANK": "17"}, "RANK") == 17


def test_dumps_of_today_are_parsed() -> None:
    assert dump_of(0, 2, collective(1), moved(2, "recv")).operations[0].name == "all_reduce"
