"""What is kept and what is freed, while others do something between any two words of ours.

Floor: tests.
"""

from __future__ import annotations

import errno

import pytest
from near_job import FILE, Job

from rdmacoll.files.entry import File, Part
from rdmacoll.files.folders import ROOT, At
from rdmacoll.ps.freeing.collector import MOST_SILENT


@pytest.fixture
def job() -> Job:
    return Job()


def test_who_has_it_open_keeps_it(job: Job) -> None:
    file, hold = job.ours.open(*FILE)
    _, again = job.ours.open(*FILE)
    job.theirs.put(*FILE)
    assert file.parts == job.before and not job.is_freed(job.before)
    for one in hold, hold, again:
        assert not job.is_freed(job.before)
        one.close()
        job.ours.holder.beat()
    assert job.is_freed(job.before)


def test_what_nobody_has_open_is_freed(job: Job) -> None:
    job.ours.holder.beat()
    job.theirs.remove(*FILE)
    assert job.is_freed(job.before)
    assert job.board.words.hear("thrown") == "[]"


def test_one_that_nobody_has_any_more_is_closed(job: Job) -> None:
    _, hold = job.ours.open(*FILE)
    job.theirs.put(*FILE)
    del hold
    job.ours.holder.beat()
    assert job.is_freed(job.before)


def test_it_is_replaced_and_freed_while_it_is_opened(job: Job) -> None:
    """Before our word says that we have it."""
    job.ours.holder.beat()
    after = []

    def replace() -> None:
        after.append(job.theirs.put(*FILE))
        assert job.is_freed(job.before)

    job.store.meanwhile("holder/1", replace)
    file, hold = job.ours.open(*FILE)
    job.theirs.remove(*FILE)
    job.theirs.holder.beat()
    assert file.parts == after[0] and not job.is_freed(file.parts)
    hold.close()
    job.ours.holder.beat()
    assert job.is_freed(file.parts)


def test_it_is_removed_while_it_is_opened(job: Job) -> None:
    """When our word has said that we have it, and before we look again."""
    job.ours.holder.beat()
    remove = lambda: job.theirs.remove(*FILE)  # noqa: E731
    job.store.meanwhile("folder/0", remove, after=1)
    with pytest.raises(FileNotFoundError):
        job.ours.open(*FILE)
    job.ours.holder.beat()
    assert job.is_freed(job.before)


def test_what_a_dead_one_had_open_is_freed(job: Job) -> None:
    _, _hold = job.ours.open(*FILE)
    job.theirs.put(*FILE)
    job.bury(job.theirs)  # ours lives
    assert not job.is_freed(job.before)
    job.bury(job.ours)
    assert job.is_dropped(job.before)
    assert job.holders() == [] and job.board.words.hear("holding") == "[]"


def test_what_a_dead_one_was_making_is_freed(job: Job) -> None:
    made, named = job.ours.make(), job.ours.make()
    job.ours.folders.put(At(ROOT, "named", "named"), File(named, 0))  # it dies before it says so
    assert not job.is_freed(made)
    job.bury(job.ours)
    assert job.is_freed(made)
    file, _hold = job.theirs.open("named")
    assert file.parts == named and not job.is_freed(named) and not job.is_freed(job.before)


def test_what_is_moved_while_it_is_looked_for_is_kept(job: Job) -> None:
    """The folder that it comes to was looked at before, and that it leaves was not."""
    job.ours.tree.make_folder(("to",))
    made = job.ours.make()
    job.ours.folders.put(At(ROOT, "named", "named"), File(made, 0))
    job.ours.tree.make_folder(("from",))
    job.theirs.tree.move(("named",), ("from", "named"))
    move = lambda: job.theirs.tree.move(("from", "named"), ("to", "named"))  # noqa: E731
    job.store.meanwhile("folder/2", move, after=0)
    job.bury(job.ours)
    assert job.theirs.tree.list(("from",)) == {}
    assert not job.is_freed(made) and job.holders() == []


def test_one_that_was_taken_for_dead_goes_on(job: Job) -> None:
    """What it has opened before may be freed; what it opens now is kept."""
    _, _hold = job.ours.open(*FILE)
    job.theirs.put("another")
    job.bury(job.ours)
    _, _again = job.ours.open("another")
    job.theirs.remove("another")
    job.theirs.remove(*FILE)
    job.theirs.holder.beat()
    assert not job.is_freed(job.before)  # as it was not replaced in between
    assert job.holders() == ["holder/3"]  # the other one needs nothing, and so is gone


def refused(job: Job, parts: tuple[Part, ...], *, appends: bool = False) -> None:
    with pytest.raises(OSError, match="stood still") as raised:
        job.ours.name(parts, *FILE, appends=appends)
    assert raised.value.errno == errno.ESTALE
    job.ours.free(parts)


def as_it_was(job: Job) -> None:
    entry = job.theirs.tree.find(FILE)
    assert isinstance(entry, File) and entry.parts == job.before
    job.bury(job.theirs)
    assert not job.is_freed(job.before)


def test_a_writer_that_was_taken_for_dead(job: Job) -> None:
    made, other = job.ours.make(), job.ours.make()
    job.bury(job.ours)
    assert job.is_freed(made)
    job.ours.make()  # it has seen it since
    refused(job, made)
    refused(job, other)
    as_it_was(job)


@pytest.mark.parametrize("appends", [False, True], ids=["new", "append"])
@pytest.mark.parametrize(
    ("key", "after"),
    [("folder/0", 0), ("folder/0", 1), ("holder/1", 0)],
    ids=["before it looks", "before it names", "before it says so"],
)
def test_a_writer_is_taken_for_dead(job: Job, key: str, after: int, appends: bool) -> None:
    made = job.ours.make()
    job.store.meanwhile(key, lambda: job.bury(job.ours), after)
    refused(job, made, appends=appends)
    as_it_was(job)
    job.ours.holder.beat()
    assert job.is_freed(made)


def test_a_writer_is_taken_for_dead_and_its_file_is_changed(job: Job) -> None:
    """By others, before it takes it back: what they did stays."""
    made = job.ours.make()
    added = job.theirs.make()

    def bury() -> None:
        job.bury(job.ours)
        job.theirs.name(added, *FILE, appends=True)

    job.store.meanwhile("holder/1", bury)
    refused(job, made)
    entry = job.theirs.tree.find(FILE)
    assert isinstance(entry, File) and entry.parts == (*job.before, *added)
    job.bury(job.theirs)

    made = job.ours.make()
    after: list[tuple[Part, ...]] = []
    (holder,) = set(job.holders()) - {"holder/2"}
    job.store.meanwhile(holder, lambda: job.bury(job.ours))
    job.store.meanwhile(holder, lambda: after.append(job.theirs.put(*FILE)))
    refused(job, made)
    entry = job.theirs.tree.find(FILE)
    assert isinstance(entry, File) and entry.parts == after[0]
    assert job.is_freed((*job.before, *added)) and not job.is_freed(after[0])


def test_two_collectors(job: Job) -> None:
    """One does all between any two words of the other."""
    _, _hold = job.ours.open("other")
    other = job.another_collector()
    for key in "thrown", "holding", "holder/1", "dropped/0", "dropped/1", "dropped/2":
        before = job.theirs.put(*FILE)
        job.theirs.put(*FILE)
        job.theirs.holder.beat()
        job.store.meanwhile(key, other.look)
        assert job.is_freed(before), key
        assert job.board.words.hear("thrown") == "[]"
    made = job.theirs.make()
    for _ in range(MOST_SILENT + 5):
        job.collector.look()
        other.look()
        job.ours.holder.beat()
    assert job.is_freed(made) and len(job.holders()) == 1
    theirs, _ = job.theirs.open("other")
    job.theirs.remove("other")
    other.look()
    assert not job.is_freed(theirs.parts)


def test_a_collector_takes_over(job: Job) -> None:
    """Where the one before has left off, at any of its words."""

    class Killed(Exception):
        pass

    def die() -> None:
        raise Killed

    for key in "holding", "dropped/0", "thrown":
        _, hold = job.ours.open(*FILE)
        before = job.before
        job.before = job.theirs.put(*FILE)
        assert not job.is_freed(before)
        hold.close()
        job.ours.holder.beat()
        job.theirs.holder.beat()
        job.collector = job.another_collector()
        job.store.meanwhile(key, die, after=1 if key == "thrown" else 0)
        with pytest.raises(Killed):
            job.collector.look()
        job.collector = job.another_collector()
        assert job.is_freed(before), key
    made = job.theirs.make()
    job.store.meanwhile("folder/0", die)
    with pytest.raises(Killed):
        job.bury(job.theirs)
    job.collector = job.another_collector()
    job.collector.look()
    assert job.is_freed(made) and "holder/2" not in job.holders()


def test_a_forked_child_is_refused(job: Job) -> None:
    def forked() -> None:
        raise RuntimeError("this process was forked")

    job.ours.board._worker.check_process = forked  # type: ignore[method-assign]
    for use in lambda: job.ours.open(*FILE), job.ours.make, job.ours.holder.beat:
        with pytest.raises(RuntimeError, match="forked"):
            use()


def test_a_finalizer_that_comes_amid_our_word_is_told(job: Job) -> None:
    _, hold = job.ours.open(*FILE)

    def finalize() -> None:
        hold.close()
        with pytest.raises(OSError, match="deadlock"):
            job.ours.make()

    job.store.meanwhile("holder/1", finalize)
    job.ours.holder.beat()
    job.theirs.put(*FILE)
    assert not job.is_freed(job.before)
    job.ours.holder.beat()
    assert job.is_freed(job.before)
