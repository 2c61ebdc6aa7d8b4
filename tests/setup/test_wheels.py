"""What `make wheels` says of a wheel by its tag; that it works: .ci/check-wheel."""

import pytest

from building.wheels import worth

NAME = "rdmacoll-0.1.0+torch2.13.0-cp311-cp311-{}.whl"


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("manylinux_2_28_x86_64", "publishable: runs with glibc 2.28 or newer"),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", "publishable: runs with glibc 2.17"),
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", "publishable: runs with glibc 2.27"),
        ("manylinux_2_35_x86_64", "not publishable: needs glibc 2.35 or newer"),
        ("manylinux_2_31_aarch64", "not publishable: needs glibc 2.31 or newer"),
        ("linux_x86_64", "not publishable: auditwheel finds no manylinux tag"),
    ],
)
def test_what_a_tag_is_worth(tag: str, said: str) -> None:
    assert worth(NAME.format(tag)).startswith(said)
