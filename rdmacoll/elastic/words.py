"""Words: what ranks of an elastic job write into its Store; signed, as others can write there, too.

A signature is of one start of all ranks of one job, and of one key: a word from elsewhere, or from
an earlier step, which has other keys, does not hold. Counters in the Store bear none.
"""

import hmac
import json
from collections.abc import Callable

import torch.distributed as dist

SIGNATURE_DIGITS = 64  # hexadecimal


class Words:
    def __init__(self, store: dist.Store, start: str, sign: Callable[[str], bytes]) -> None:
        """start: which start of the ranks of which job it is; sign: with the job's secret."""
        self._store = store
        self._start = start
        self._sign = sign

    def say(self, key: str, word: str) -> None:
        self._store.set(key, self._signed(key, word))

    def hear(self, key: str) -> str | None:
        """None: nobody has said it yet. RuntimeError: somebody who is not of this job has."""
        if not self._store.check([key]):
            return None
        return self._verified(key, _text(self._store.get(key)))

    def say_first(self, key: str, word: str) -> str:
        """What the first who called it has said; the same for all."""
        said = self._store.compare_set(key, "", self._signed(key, word))
        return self._verified(key, _text(said))

    def _signed(self, key: str, word: str) -> str:
        return self._sign(json.dumps([self._start, key, word])).hex() + word

    def _verified(self, key: str, value: str) -> str:
        word = value[SIGNATURE_DIGITS:]
        if not hmac.compare_digest(value.encode(), self._signed(key, word).encode()):
            raise RuntimeError(
                f"nobody of this job has signed what the Store holds under {key!r}: somebody else "
                "writes into it, or a rank has another RDMACOLL_SECRET_FILE"
            )
        return word


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
