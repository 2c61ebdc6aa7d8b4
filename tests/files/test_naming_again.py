"""Tables that a folder names again after they were thrown away, and such as it may name: what is
kept and what is freed, while others do something between any two words of ours.

Floor: tests.
"""

from __future__ import annotations

import errno

import pytest
from near_job import FILE, Job

from rdmacoll.files.entry import File, Part
from rdmacoll.files.holder import Hold


@pytest.fixture
def job() -> Job:
    return Job()


Parts = tuple[Part, ...]
# Words of a look of the collector, and of who names tables again.
WORDS = [
    *("thrown", "named again", "times named again", "folders", "folder/0"),
    *("holding", "holder/1", "holder/2", "dropped/0"),
]


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("key", WORDS)
def test_what_is_named_again_is_kept(job: Job, key: str, after: int) -> None:
    """Somebody changes a file within, and another one replaces it meanwhile. The collector looks
    between any two words of it, or all of it comes between any two words of a look."""
    for is_within_look in False, True:
        opened = job.ours.open(*FILE)
        job.theirs.put(*FILE)
        assert not job.is_freed(opened[0].parts)
        named: list[Parts] = []

        def change(opened: tuple[File, Hold] = opened, named: list[Parts] = named) -> None:
            named.append(job.ours.change_within(opened, *FILE))

        if is_within_look:
            job.store.meanwhile(key, change, after)
            job.collector.look()
            job.store.forget_meanwhile()
        else:
            job.store.meanwhile(key, job.collector.look, after)
        if not named:
            change()
        job.store.forget_meanwhile()
        for _ in range(3):
            job.collector.look()
        assert not set(job.dropped()).intersection(part.table for part in named[0])
        _, hold = job.theirs.open(*FILE)
        job.ours.remove(*FILE)
        job.collector.look()
        job.collector.look()
        assert not set(job.dropped()).intersection(part.table for part in named[0])
        hold.close()
        job.theirs.holder.beat()
        job.collector.look()
        assert job.is_freed(named[0])
        assert job.board.words.hear("named again") == "[]"
        job.theirs.put(*FILE)


@pytest.mark.parametrize("after", range(5))
def test_what_is_named_again_is_removed_while_the_collector_looks(job: Job, after: int) -> None:
    """As it finds that the name has it."""
    opened = job.ours.open(*FILE)
    job.theirs.put(*FILE)
    named = job.ours.change_within(opened, *FILE)
    job.store.meanwhile("thrown", lambda: job.theirs.remove(*FILE), after)
    for _ in range(4):
        job.collector.look()
    assert job.is_freed(named)


def test_what_is_named_again_and_thrown_away_late(job: Job) -> None:
    """Who has replaced it says so when the name has it again."""
    opened = job.ours.open(*FILE)
    at = job.theirs.tree.at(FILE)
    made = job.theirs.make()
    before = job.theirs.folders.put(at, File(made, 0))
    named = job.ours.change_within(opened, *FILE)
    assert before is not None
    job.theirs.free(before.parts)
    job.theirs.free(made)
    for _ in range(3):
        assert not job.is_freed(before.parts)
    job.ours.remove(*FILE)
    assert job.is_freed(named)


def test_one_that_changes_a_file_is_killed_as_it_names_it_again(job: Job) -> None:
    """Before it says that it has: the name has it, and so it is kept."""
    opened = job.ours.open(*FILE)
    job.theirs.put(*FILE)
    at = job.ours.tree.at(FILE)
    with pytest.raises(ZeroDivisionError), job.ours.board.naming_again(opened[0].tables):
        job.ours.folders.put(at, opened[0])
        raise ZeroDivisionError
    job.bury(job.ours)
    for _ in range(3):
        assert not job.is_freed(opened[0].parts)
    job.theirs.remove(*FILE)
    assert job.is_freed(opened[0].parts)


def test_one_that_was_taken_for_dead_changes_a_file(job: Job) -> None:
    """What it has begun with may be freed by then."""
    opened = job.ours.open(*FILE)
    after = job.theirs.put(*FILE)
    job.bury(job.ours)
    at, base = job.ours.tree.at(FILE), opened[1]
    for _ in range(2):  # before it knows of it, and then
        with pytest.raises(OSError, match="stood still") as raised:
            job.ours.holds.put(at, opened[0], [], base)
        assert raised.value.errno == errno.ESTALE
    entry = job.theirs.tree.find(FILE)
    assert isinstance(entry, File) and entry.parts == after
    job.ours.holds.put(at, File((), 0), [], base)  # there is nothing in it to lose


@pytest.mark.parametrize(
    ("key", "appends"), [("holder/1", False), ("holder/1", True), ("thrown", False)]
)
@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), OSError(errno.EIO, "the Store fails")], ids=["Ctrl-C", "EIO"]
)
def test_a_writer_fails_as_its_file_gets_its_name(
    job: Job, failure: BaseException, key: str, appends: bool
) -> None:
    """What it has made is freed, but for what the name has; that is all there."""

    def fail() -> None:
        raise failure

    made = job.ours.make()
    tables = [part.table for part in made]
    job.store.meanwhile(key, fail)
    with pytest.raises(type(failure)):
        job.ours.name(made, *FILE, appends=appends)
    job.ours.holds.free(tables)
    for _ in range(3):
        job.collector.look()
        job.ours.holder.beat()
    entry = job.theirs.tree.find(FILE)
    assert isinstance(entry, File) and entry.parts
    assert not set(job.dropped()).intersection(part.table for part in entry.parts)
    assert job.is_freed(made) or set(made) <= set(entry.parts)
