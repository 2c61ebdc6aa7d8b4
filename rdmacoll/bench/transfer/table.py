"""The result for people: lines as they are printed. Pure."""

from collections.abc import Iterator

from rdmacoll.base.byte_sizes import text_of_size

from .result import Result, Row


def heading(result: Result) -> Iterator[str]:
    flag = "not measured" if result.flag_us is None else f"{result.flag_us:.2f} us"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    load = " ".join(f"{load:.1f}" for load in result.load)
    yield f"a pair of processes for each way, {result.cores} cores · {versions}"
    yield f"load {load} · flag {flag} in C++ · {result.rounds} rounds, every byte checked"
    yield ""
    yield (
        f"{'size':>9}  {'way':<14}{'us':>12}{'times ours':>12} {'':<18}"
        f"{'CPU us':>12}{'CPU s/GB':>10}{'times ours':>12}"
    )


def row_lines(row: Row) -> Iterator[str]:
    for number, (name, one) in enumerate(row.ways.items()):
        size = "" if number else text_of_size(row.bytes)
        form = f"  {one.form}" if one.form else ""
        yield (
            f"{size:>9}  {name:<14}{one.us:>12.1f}{one.slower.median:>12.2f} "
            f"{one.slower.between:<18}{one.cpu_us:>12.1f}{one.cpu_s_per_gb:>10.3f}"
            f"{one.cpu.median:>12.2f}{form}"
        )
        if not number:
            yield f"{'':>11}{_counted(one.counted, one.transfers)}"


def _counted(counted: dict[str, int], transfers: int) -> str:
    told = (f"{count} {what.replace('_', ' ')}" for what, count in counted.items())
    return f"{', '.join(told)} in {transfers} transfers"
