"""Key: by what rdmarun and the agents of a job prove to each other who they are.

It does not travel over MPI: key_sharing.py brings it to the hosts, or RDMACOLL_SECRET_FILE has it.
Floor: launcher. Thread: any.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from .comm import Comm

NONCE_BYTES = 32
ASKS = b"rdmarun: next "


class NotOfTheJob(RuntimeError):
    """Somebody does not know the key; the message names the host."""


@dataclass(frozen=True)
class Key:
    """An empty secret is for the only agent of a job, which rdmarun knows by its pipes."""

    secret: bytes
    run_id: str  # drawn for one run of rdmarun: what was signed in another does not hold

    def sign(self, purpose: str, *parts: bytes) -> bytes:
        said = b"".join(
            len(part).to_bytes(8, "little") + part
            for part in (purpose.encode(), self.run_id.encode(), *parts)
        )
        return hmac.digest(self.secret, said, "sha256")

    def seal(self, purpose: str, text: bytes, *about: bytes) -> bytes:
        return self.sign(purpose, text, *about).hex().encode() + text

    def unseal(self, purpose: str, sealed: bytes, *about: bytes) -> bytes:
        text = sealed[2 * hmac.new(b"", b"", "sha256").digest_size :]
        if not hmac.compare_digest(self.seal(purpose, text, *about), sealed):
            raise NotOfTheJob(f"somebody who does not know the job's key has changed the {purpose}")
        return text

    @property
    def ask_line(self) -> bytes:
        """By which agent 0 asks rdmarun for the job, once all agents have proved themselves."""
        return ASKS + self.sign("agent 0 to rdmarun").hex().encode() + b"\n"


@dataclass(frozen=True)
class Trust:
    """What the agents have once each has proved to all others that it knows the key."""

    key: Key
    nonces: bytes  # one of each agent, all drawn for this

    def seal(self, purpose: str, text: bytes) -> bytes:
        return self.key.seal(purpose, text, self.nonces)

    def unseal(self, purpose: str, sealed: bytes) -> bytes:
        return self.key.unseal(purpose, sealed, self.nonces)

    def secret(self, purpose: str) -> bytes:
        """Known to these agents only. One that is alone has told nobody its nonce."""
        return self.key.sign(purpose, self.nonces)


def establish_trust(comm: Comm, key: Key, hosts: Sequence[str]) -> Trust:
    """All agents call it; NotOfTheJob names the hosts whose agents do not know the key.

    A proof is of all nonces, the prover's place and this run: no other time or place has the same.
    """
    mine = secrets.token_bytes(NONCE_BYTES)
    nonces = b"".join(_from_all(comm, mine))
    if nonces[comm.rank * NONCE_BYTES :][:NONCE_BYTES] != mine:
        raise NotOfTheJob("somebody between the agents changes what they say")
    proofs = _from_all(comm, _proof(key, comm.rank, nonces))
    strangers = [
        hosts[agent]
        for agent, proof in enumerate(proofs)
        if not hmac.compare_digest(proof, _proof(key, agent, nonces))
    ]
    if strangers:
        raise NotOfTheJob(
            f"the agents on {', '.join(strangers)} do not know the job's key: somebody else has "
            "come in their place, or RDMACOLL_SECRET_FILE has another content there"
        )
    return Trust(key, nonces)


def _proof(key: Key, agent: int, nonces: bytes) -> bytes:
    return key.sign("agent to agents", str(agent).encode(), nonces)


def _from_all(comm: Comm, mine: bytes) -> list[bytes]:
    """Of the same length from each: strangers do not choose what is allocated."""
    gathering = comm.begin_gathering(mine, [len(mine)] * comm.size)
    gathering.wait()
    everyones = gathering.test()
    assert everyones is not None
    return [everyones[at : at + len(mine)] for at in range(0, len(everyones), len(mine))]
