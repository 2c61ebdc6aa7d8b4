"""Words: what processes of a job write into its Store. They are signed, as anybody who reaches the
Store can write there, too.

A signature is valid for one start of all ranks of one job and for one key. So a word from another
job is refused, and so is one from an earlier step, whose key is another.
"""

import hmac
import json
from collections.abc import Callable

import torch.distributed as dist

SIGNATURE_DIGITS = 64  # hexadecimal
NOTHING = "?"  # no word: it is signed by nobody


class Words:
    def __init__(self, store: dist.Store, start: str, sign: Callable[[str], bytes]) -> None:
        """start: names this start of all the job's ranks; sign: signs with the job's secret."""
        self._store = store
        self._start = start
        self._sign = sign

    def say(self, key: str, word: str) -> None:
        self._store.set(key, self._signed(key, word))

    def hear(self, key: str) -> str | None:
        """None if nobody has said it yet; RuntimeError if somebody has who is not of this job."""
        # A Store that has none answers with what it was to compare: so one question is enough.
        said = _text(self._store.compare_set(key, NOTHING, NOTHING))
        return None if said == NOTHING else self._verified(key, said)

    def say_first(self, key: str, word: str) -> str:
        """Says it unless another rank was first; what the first one said, the same for all."""
        said = self._store.compare_set(key, "", self._signed(key, word))
        return self._verified(key, _text(said))

    def change(self, key: str, word: str, next_word: str) -> str:
        """Says the next word, unless the newest is another one by now; the newest one then. Where
        there is none any more, the word that was to be changed."""
        signed = self._signed(key, word), self._signed(key, next_word)
        return self._verified(key, _text(self._store.compare_set(key, *signed)))

    def append(self, log: str, known: int, word: str) -> int:
        """Says it behind at least so many words of a log; how many there are then. What two say
        alike may be there once. `log/0`, `log/1`, ... is read from its begin: it has no gaps."""
        while self.say_first(f"{log}/{known}", word) != word:
            known += 1
        return known + 1

    def forget(self, key: str) -> None:
        self._store.delete_key(key)

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
