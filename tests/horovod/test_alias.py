"""`import horovod.torch` gives rdmacoll.horovod, in processes that have the folder on PYTHONPATH.

Floor: tests.
"""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from rdmacoll.base.horovod_folder import FOLDER, with_folder
from rdmacoll.horovod.alias import helpers

FRAMEWORKS = ["tensorflow", "keras", "mxnet", "spark", "ray"]


def python(folder: Path, code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Runs it as a script of this folder, by a python that finds rdmacoll as `horovod`."""
    (folder / "script.py").write_text(textwrap.dedent(code))
    path = with_folder(env.pop("PYTHONPATH", None))
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, **env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


def said_by(folder: Path, code: str, **env: str) -> list[str]:
    done = python(folder, code, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_nothing_is_imported_before_a_script_asks(tmp_path: Path) -> None:
    said = said_by(
        tmp_path,
        f"""
        import sys
        import horovod, horovod.common, horovod.runner.common.util
        print(horovod.__version__, horovod.__path__, horovod.common.__path__)
        print(*{{"torch", "rdmacoll", "rdmacoll.horovod"}} & sys.modules.keys())
        print({FOLDER!r} in sys.path, type(sys.meta_path[0]).__name__)
        """,
    )
    assert said == ["0.28.1 [] []", "", "False _Alias"]


def test_the_modules_are_the_very_same(tmp_path: Path) -> None:
    said = said_by(
        tmp_path,
        """
        import horovod.torch as hvd
        from horovod.torch.mpi_ops import allreduce_async_, rank, synchronize
        import sys
        from importlib import import_module
        from importlib.util import find_spec
        import rdmacoll.horovod
        from rdmacoll.horovod.alias import ELASTIC, MODULES, install
        before = list(sys.meta_path)
        install()
        print(sys.meta_path == before, rdmacoll.horovod.__spec__.name)
        print(hvd is rdmacoll.horovod is sys.modules["horovod.torch"])
        for name, ours in MODULES.items():
            if ours != ELASTIC or find_spec(ELASTIC) is not None:
                if import_module(name) is not import_module(ours):
                    print(name, "is not", ours)
        """,
    )
    assert said == ["True rdmacoll.horovod", "True"]


def test_the_modules_of_elastic(tmp_path: Path) -> None:
    said = said_by(
        tmp_path,
        """
        import sys
        import horovod.torch.elastic.state as state
        import horovod.common.elastic
        from horovod.torch.elastic.sampler import ElasticSampler
        import horovod.torch as hvd
        print(state is hvd.elastic is sys.modules["horovod.common.elastic"], state.TorchState)
        print(ElasticSampler is hvd.elastic.ElasticSampler)
        """,
    )
    assert said == ["True <class 'rdmacoll.horovod.elastic.torch_state.TorchState'>", "True"]


def test_what_horovod_has_besides(tmp_path: Path) -> None:
    names = [*FRAMEWORKS, "tensorflow.keras", "torch.mpi_lib_v2"]
    said = said_by(
        tmp_path,
        f"""
        import horovod.runner
        for name in {names}:
            try:
                __import__(f"horovod.{{name}}")
            except ImportError as error:
                print(error)
        try:
            horovod.run(print, np=2)
        except NotImplementedError as error:
            print(error, horovod.runner.run is horovod.run)
        """,
    )
    only = "rdmacoll has the face of horovod.torch only, and no horovod"
    wanted = [*FRAMEWORKS, "tensorflow", "torch.mpi_lib_v2"]
    assert said[:-1] == [f"horovod.{name}: {only}.{name}" for name in wanted]
    assert said[-1].startswith("horovod.run(): rdmacoll starts no ranks from within python; start")
    assert said[-1].endswith("rdmarun --horovod -np N script.py True")


def test_a_horovod_that_is_there_is_hidden(tmp_path: Path) -> None:
    """Rank 0 says so once, and not the processes that it starts."""
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod/__init__.py").write_text("raise ImportError('the other one')")
    script = """
        import horovod, multiprocessing
        if __name__ == "__main__":
            child = multiprocessing.get_context("spawn").Process(target=print)
            child.start()
            child.join()
            print(horovod.__version__)
    """
    for rank, count in ("0", 1), ("1", 0):
        done = python(tmp_path, script, RANK=rank)
        assert (done.returncode, done.stdout) == (0, "\n0.28.1\n"), done.stderr
        assert done.stderr.count("\n") == count
        assert count == 0 or done.stderr == (
            f"rdmacoll: `import horovod` is rdmacoll's; {tmp_path}/horovod/__init__.py is not "
            "used\n"
        )


def test_it_must_come_before_another_is_imported(tmp_path: Path) -> None:
    (tmp_path / "horovod.py").write_text("")
    said = said_by(
        tmp_path,
        """
        import sys
        del sys.meta_path[0]
        import horovod
        from rdmacoll.horovod.alias import install
        try:
            install()
        except RuntimeError as error:
            print(error)
        """,
    )
    assert said == [
        f"rdmacoll.horovod.alias.install(): {tmp_path}/horovod.py has been imported as horovod "
        "already; call it before anything imports horovod"
    ]


def test_the_users_own_hook_runs(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sitecustomize.py").write_text("import horovod; print(horovod.__version__)")
    script = "import sitecustomize; print('mine' in sitecustomize.__file__)"
    assert said_by(tmp_path, script, PYTHONPATH="mine") == ["0.28.1", "True"]


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, FOLDER), ("", FOLDER), ("a::b", f"{FOLDER}:a::b"), (f"a:{FOLDER}", f"{FOLDER}:a")],
)
def test_the_path_of_children(before: str | None, after: str) -> None:
    assert with_folder(before) == after


def test_a_thread() -> None:
    ended: list[object] = []
    threads = [
        helpers.in_thread(ended.append, (1,), name="named"),
        helpers.in_thread(lambda: 1 // 0, silent=True, daemon=False),
    ]
    for thread in threads:
        thread.join()
    assert ended == [1]
    assert [thread.daemon for thread in threads] == [True, False]
    assert threads[0].name == "named" and threads[0] is not threading.current_thread()
    with pytest.raises(ValueError, match=r"args=1 is no tuple; give \(value,\)"):
        helpers.in_thread(print, 1)  # type: ignore[arg-type]


def test_an_environment_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in "HOROVOD_RANK", "HOROVOD_SIZE", "PMI_RANK", "PMI_SIZE":
        monkeypatch.delenv(variable, raising=False)
    assert helpers.get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "5")
    with helpers.env(HOROVOD_RANK="2", HOROVOD_SIZE="3", PMI_RANK="7", ABSENT=None):
        assert helpers.get_env_rank_and_size() == (2, 3)
        assert os.environ["PMI_RANK"] == "7" and "ABSENT" not in os.environ
    assert os.environ["PMI_RANK"] == "5" and "HOROVOD_RANK" not in os.environ
    with pytest.raises(RuntimeError, match="only one of PMI_RANK and PMI_SIZE is set"):
        helpers.get_env_rank_and_size()
