"""What is known of the servers of a job and of their tables. Values, and their JSON.

Floor: rdmacoll/servers. Thread: any.
"""

import json
from dataclasses import asdict, dataclass, field

SERVES = "serves"
SILENT = "silent"  # no sign of life
ENDED = "ended"  # as it was told to
ABSENT = "absent"  # it has not started yet

MORE_MEMORY = "give them more memory (rdmarun: --server-memory; rdmacoll ps serve: --memory)"


@dataclass(frozen=True)
class ServerStatus:
    """What a server has said of itself last."""

    number: int
    state: str = ABSENT
    host: str = ""
    pid: int = 0
    restarts: int = 0  # starts of this server before this one, also such as came to nothing
    began_s: float = 0.0  # since 1970, by the clock of its host
    said_s: float = 0.0  # likewise: when it said all this
    silent_s: float = 0.0  # 0: it is not silent
    buckets: int = 0  # of which it is the primary
    alone: int = 0  # of these, without a backup that they are to have
    without_room: int = 0  # buckets that others have told it of, and it has no room for
    tables: int = 0
    rows: int = 0  # with those that it is the backup of, as what follows
    elements: int = 0  # of dense tables
    pushes: int = 0
    pulls: int = 0
    memory_bytes: int = 0  # of all tables, with the optimizers' state
    memory_limit_bytes: int = 0
    rows_of: dict[str, int] = field(default_factory=dict)  # by table, where it is the primary
    # Likewise, of tables whose workers go in step: the last step of each that is in all of them.
    steps_of: dict[str, list[int]] = field(default_factory=dict)

    def to_word(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_word(word: str) -> "ServerStatus":
        return ServerStatus(**json.loads(word))


@dataclass(frozen=True)
class TableStatus:
    """A table of the job's servers, as `rdmacoll ps status` shows it."""

    number: int
    name: str
    kind: str  # "dense" or "rows"
    shape: list[int]  # of rows: of one
    optimizer: str
    rows: int | None = None  # that are there; None: the table is dense
    # The last step that each worker has made, by ranks; None: they do not go in step, or none yet.
    steps: list[int] | None = None


@dataclass(frozen=True)
class JobStatus:
    store: str  # HOST:PORT, by which the job is told from others
    replicas: int  # servers that each bucket is to have
    servers: list[ServerStatus]
    tables: list[TableStatus]

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> "JobStatus":
        """ValueError: it is none, or one of another version."""
        try:
            fields = json.loads(text)
            fields["servers"] = [ServerStatus(**one) for one in fields["servers"]]
            fields["tables"] = [TableStatus(**one) for one in fields["tables"]]
            return JobStatus(**fields)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"no status that this version reads: {error}") from error
