"""What an agent that comes back in the place of a lost one has missed, as agent 0 tells it.

Floor: launcher/agent. Thread: the agent's.
"""

import json
from dataclasses import asdict, dataclass

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.keys.key import Key, Trust

from .losses import Counts
from .rank_env import Attempt


@dataclass(frozen=True)
class Missed:
    job: Job
    trust: Trust
    attempt: Attempt
    exchange: int  # the next one
    counts: Counts

    def to_text(self) -> bytes:
        texts = [self.job.to_text().decode(), self.attempt.to_text().decode()]
        nonces, counts = self.trust.nonces.hex(), asdict(self.counts)
        return json.dumps([*texts, nonces, self.exchange, counts]).encode()

    @staticmethod
    def from_text(text: bytes, key: Key) -> "Missed":
        job, said, nonces, exchange, counts = json.loads(text)
        trust = Trust(key, bytes.fromhex(nonces))
        number = Attempt.from_text(said.encode(), b"").number
        attempt = Attempt.from_text(said.encode(), ranks_secret(trust, number))
        return Missed(Job.from_text(job.encode()), trust, attempt, exchange, Counts(**counts))


def ranks_secret(trust: Trust, number: int) -> bytes:
    """Of one start of all ranks. Each agent derives it by itself."""
    return trust.secret(f"ranks of start {number}")
