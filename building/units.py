"""Compiles files to objects, several at once, and says so. An object is made again when its source,
a header that it includes, or the command has changed.
"""

import os
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

GIB_PER_COMPILER = 3  # the unit with all of torch_ext takes 2.6 GiB


class CompileError(Exception):
    """The compiler has said why."""


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX", "c++"))


def users_flags(*names: str) -> list[str]:
    return [flag for name in names for flag in shlex.split(os.environ.get(name, ""))]


def compilers_at_once() -> int:
    if jobs := os.environ.get("MAX_JOBS"):
        return max(1, int(jobs))
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return max(1, min(len(os.sched_getaffinity(0)), memory_gib // GIB_PER_COMPILER))


def has_header(name: str, *flags: str) -> bool:
    command = [*compiler(), *users_flags("CPPFLAGS"), *flags, "-fsyntax-only", "-x", "c++", "-"]
    source = f"#include <{name}>".encode()
    return subprocess.run(command, input=source, stderr=subprocess.DEVNULL).returncode == 0


def unit(path: Path, sources: list[str]) -> Path:
    """A file that includes all of these: most of the time goes into headers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f'#include "{source}"\n' for source in sources)
    if not path.exists() or path.read_text() != text:  # else it would be compiled again
        path.write_text(text)
    return path


def compile_all(
    sources: list[Path], folder: Path, flags: list[str], strict: list[str]
) -> list[str]:
    """The objects, in `folder`. Of `strict`, flags that add errors alone, no object depends."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [*compiler(), *users_flags("CPPFLAGS", "CXXFLAGS"), *flags]
    objects = {source: folder / f"{source.stem}.o" for source in sources}
    stale = [source for source, made in objects.items() if not _is_fresh(made, source, command)]
    jobs = compilers_at_once()
    if stale:
        _say(f"compiling {len(stale)} of {len(sources)} units, {jobs} at once")
    with ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(_compile, command, strict, one, objects[one]): one for one in stale}
        for done, run in enumerate(as_completed(runs), 1):
            if run.exception():
                pool.shutdown(cancel_futures=True)
            _say(f"compiled {done} of {len(stale)}: {runs[run].stem}, {run.result():.0f} s")
    return [str(made) for made in objects.values()]


def link(objects: list[str], path: Path, flags: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _run([*compiler(), "-shared", *users_flags("LDFLAGS"), *objects, *flags, "-o", str(path)])


def _say(text: str) -> None:
    print(f"rdmacoll: {text}", flush=True)


def _run(command: list[str]) -> None:
    if subprocess.run(command).returncode != 0:
        raise CompileError(f"this failed: {shlex.join(command)}")


def _compile(command: list[str], strict: list[str], source: Path, made: Path) -> float:
    begin = time.monotonic()
    said = made.with_suffix(".command")
    said.unlink(missing_ok=True)
    depends = ["-MMD", "-MF", str(made.with_suffix(".d"))]
    _run([*command, *strict, *depends, "-c", str(source), "-o", str(made)])
    said.write_text(shlex.join(command))
    return time.monotonic() - begin


def _is_fresh(made: Path, source: Path, command: list[str]) -> bool:
    """-MMD leaves out the headers of others: those of torch are another folder, or version."""
    said, depends = made.with_suffix(".command"), made.with_suffix(".d")
    if not (made.exists() and depends.exists() and said.exists()):
        return False
    if said.read_text() != shlex.join(command):
        return False
    names = depends.read_text().replace("\\\n", " ").partition(":")[2].split()
    built = made.stat().st_mtime
    return all(os.path.exists(name) and os.stat(name).st_mtime <= built for name in names)
