"""perftest's programs, which measure a device alone: server and client on one of this host.

perftest's MB are 2^20 bytes.
"""

from __future__ import annotations

import re
import subprocess
import time

MIB = 1 << 20
LIMIT_S = 180


def perftest(program: str, options: list[str], device: list[str], port: int) -> str:
    """Runs the server and the client of a perftest program; the client's output."""
    command = [program, "-F", "-p", str(port), *device, *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(100):
            client = subprocess.run(
                [*command, "127.0.0.1"], capture_output=True, text=True, timeout=LIMIT_S
            )
            if client.returncode == 0:
                server.wait(LIMIT_S)
                return client.stdout
            if server.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"{' '.join(command)} failed:\n{client.stdout}{client.stderr}")
    finally:
        server.kill()
        server.wait()


def last_row(output: str) -> list[float]:
    rows = [line.split() for line in output.splitlines() if re.match(r"\s*\d+\s+\d+\s", line)]
    if not rows:
        raise SystemExit(f"no result in perftest's output:\n{output}")
    return [float(field) for field in rows[-1]]
