"""Tables that are kept at one server each (--server-replicas 1), one of which is lost.

Floor: tests.
"""

from __future__ import annotations

from job_runner import Jobs
from test_lost_servers import run


def test_a_lost_server_takes_its_part_along(jobs: Jobs) -> None:
    text = """
        assert ps.stats().replicas == 1
        push(0).wait()
        check(1, [0])
        lost.kill(1)
        kept, errors = [], set()
        for id in IDS.tolist():
            try:
                kept.append(kv.row_pull("rows", [id]).unique().item())
            except remote.PeerError as error:
                errors.add(str(error))
        assert set(kept) == {0.0} and 0 < len(kept) < len(IDS), kept
        print("lost:", *errors)
        sys.stdout.flush()
        os._exit(0)
    """
    options = ["-np", "1", "--servers", "2", "--server-replicas", "1"]
    done = run(jobs, text, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "server 1 has ended, and no other one has what it had" in done.stdout
    assert "at this server alone" not in done.stderr  # as nobody has asked for more
