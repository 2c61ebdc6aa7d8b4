"""The command line of `rdmacoll debug`: what is wrong with one is said at once."""

import argparse

import pytest

from rdmacoll.debug.options import describe


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0", "soon"])
def test_a_wait_that_is_no_time(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    describe(parser)
    assert parser.parse_args(["dump", "--seconds", "1.5"]).seconds == 1.5
    with pytest.raises(SystemExit):
        parser.parse_args(["dump", f"--seconds={seconds}"])
    said = f"argument --seconds: {seconds!r} is no number of seconds above 0"
    assert said in capsys.readouterr().err
