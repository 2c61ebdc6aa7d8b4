"""Key: what rdmarun and the agents of a job know, and prove to each other that they know.

It does not travel over MPI: either key_sharing.py brings it to the hosts, or it is the content of
RDMACOLL_SECRET_FILE.
Floor: launcher/keys. Thread: any.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from rdmacoll.launcher.base.comm import Gatherer

NONCE_BYTES = 32
SIGNATURE_DIGITS = 64  # hexadecimal
ASKS = b"rdmarun: next "


class NotOfTheJob(RuntimeError):
    """Somebody who does not know the key takes part; the message says what is known of them."""


@dataclass(frozen=True)
class Key:
    """The secret is empty where rdmarun starts the only agent itself: their pipes are private."""

    secret: bytes
    run_id: str  # drawn by each run of rdmarun; what was signed in another run is not valid

    def sign(self, purpose: str, *parts: bytes) -> bytes:
        """A signature of these parts, in this order, for this purpose and this run."""
        said = b"".join(
            len(part).to_bytes(8, "little") + part
            for part in (purpose.encode(), self.run_id.encode(), *parts)
        )
        return hmac.digest(self.secret, said, "sha256")

    def seal(self, purpose: str, text: bytes, *about: bytes) -> bytes:
        """The text behind its signature, which is also of `about`."""
        return self.sign(purpose, text, *about).hex().encode() + text

    def unseal(self, purpose: str, sealed: bytes, *about: bytes) -> bytes:
        """The text that was sealed; NotOfTheJob if the signature is not right."""
        text = sealed[SIGNATURE_DIGITS:]
        if not hmac.compare_digest(self.seal(purpose, text, *about), sealed):
            raise NotOfTheJob(f"somebody who does not know the job's key has changed the {purpose}")
        return text

    @property
    def ask_line(self) -> bytes:
        """Agent 0 writes it to ask rdmarun for the job, once all agents have proved themselves."""
        return ASKS + self.sign("agent 0 to rdmarun").hex().encode() + b"\n"


@dataclass(frozen=True)
class Trust:
    """What an agent has once all have proved to each other that they know the key."""

    key: Key
    nonces: bytes  # one of each agent, in their order, drawn for this proof

    def seal(self, purpose: str, text: bytes) -> bytes:
        return self.key.seal(purpose, text, self.nonces)

    def unseal(self, purpose: str, sealed: bytes) -> bytes:
        return self.key.unseal(purpose, sealed, self.nonces)

    def secret(self, purpose: str) -> bytes:
        """Only these agents can derive it. An agent that is alone may have an empty key; then its
        nonce is the secret, which it has told nobody."""
        return self.key.sign(purpose, self.nonces)


def establish_trust(comm: Gatherer, key: Key, hosts: Sequence[str]) -> Trust:
    """All agents call it; NotOfTheJob names the hosts whose agents do not know the key.

    Each signs the nonces of all, together with its own place among the hosts. So its proof is of no
    use to another agent, at another time or in another run.
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


def _from_all(comm: Gatherer, mine: bytes) -> list[bytes]:
    """What each agent gave. The length is the same for all and known before, so that no stranger
    chooses how much is allocated."""
    everyones = comm.begin_gathering(mine, [len(mine)] * comm.size).wait()
    return [everyones[at : at + len(mine)] for at in range(0, len(everyones), len(mine))]
