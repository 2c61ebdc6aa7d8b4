"""Outlets: where the processes of this host write to. That is rdmarun's own output, with a tag that
says who has written, and the files of --output-filename.

Floor: launcher/agent. Thread: the agent's.
"""

import selectors
from datetime import datetime
from functools import partial
from pathlib import Path

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.sink import Sink

from .output import Stream
from .output_files import NAMES, open_output_files
from .spawn import Started, StartError

Files = tuple[int, int] | tuple[None, None]


class Outlets:
    """`who` is "rank 3", "server 0" or "the mount", as people call a process."""

    def __init__(self, job: Job, selector: selectors.BaseSelector, out: Sink, err: Sink) -> None:
        self._job = job
        self._selector = selector
        self._sinks = out, err
        self.lost_output = False  # whether a file could not be written

    def say(self, text: str) -> None:
        """A line of the launcher's own."""
        self._sinks[1].say(text)

    def open_files(self, who: str, is_restart: bool) -> Files:
        """StartError if they cannot be opened."""
        if self._job.output_dir is None:
            return None, None
        folder = Path(self._job.cwd, self._job.output_dir)
        try:
            return open_output_files(folder, _folder_of(who), is_restart)
        except OSError as error:
            raise StartError(who, str(error)) from None

    def connect(
        self, who: str, process: Started, files: Files, is_shown: bool = True
    ) -> tuple[Stream, Stream]:
        """Its standard output and standard error."""
        tag = f"[{_short(who).removeprefix('rank ')}]: " if self._job.tag_output else ""
        out, err = (
            Stream(
                pipe,
                sink if is_shown else None,
                partial(_line_start, tag, self._job.timestamp),
                file,
                self._selector,
                partial(self._on_file_error, who, name),
            )
            for pipe, sink, file, name in zip(
                (process.stdout, process.stderr), self._sinks, files, NAMES, strict=True
            )
        )
        return out, err

    def _on_file_error(self, who: str, name: str, error: OSError) -> None:
        self.say(
            f"{self._job.output_dir}/{_folder_of(who)}/{name}: {error.strerror}; it gets no more "
            f"output of {who} (--output-filename), the job goes on"
        )
        self.lost_output = True


def _line_start(tag: str, timestamp: bool) -> bytes:
    """A time is that at which the line came to the agent, by the clock of its host."""
    time = datetime.now().isoformat(" ", "milliseconds") + " " if timestamp else ""
    return (time + tag).encode()


def _folder_of(who: str) -> str:
    return _short(who).replace(" ", ".")


def _short(who: str) -> str:
    return who.removeprefix("the ")
