"""The result for people: lines as they are printed. Pure."""

from collections.abc import Iterator

from rdmacoll.base.byte_sizes import text_of_size

from .result import Result, Row

COLUMNS = ("p50 us", "p99 us", "rank 0 us", "algbw GB/s", "busbw GB/s")


def heading(result: Result) -> Iterator[str]:
    machine = result.machine
    flag = "not measured" if machine.flag_us is None else f"{machine.flag_us:.2f} us"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    yield f"{result.ranks} ranks on {machine.cores} cores · {result.what} · {versions}"
    yield (
        f"memcpy {machine.copy_gb_per_s:.1f} GB/s by each rank at once · flag {flag} · "
        f"torch's own call {machine.torch_call_us:.1f} us"
    )


def operation_heading(operation: str, systems: list[str]) -> Iterator[str]:
    compared = f"  {systems[0]} is faster" if len(systems) > 1 else ""
    columns = "".join(f"{column:>12}" for column in COLUMNS)
    yield ""
    yield f"{operation:<15}{'size':>9}  {'system':<6}{columns}{compared}"


def row_lines(row: Row) -> Iterator[str]:
    size = text_of_size(row.bytes) if row.bytes else "-"
    for number, (system, times) in enumerate(row.systems.items()):
        cells = [
            f"{'' if number else size:>24}  {system:<6}",
            *(f"{us:>12.1f}" for us in (times.p50_us, times.p99_us, times.root_p50_us)),
            *(_rate(rate, row) for rate in (times.algbw_gb_per_s, times.busbw_gb_per_s)),
        ]
        yield "".join(cells) + (f"{times.times_slower:>15.2f}x" if number else "")


def _rate(gb_per_s: float, row: Row) -> str:
    return f"{gb_per_s:>12.3f}" if row.bytes else f"{'-':>12}"
