"""The result for people: lines as they are printed. Pure."""

from collections.abc import Iterator

from rdmacoll.base.byte_sizes import text_of_size

from .result import Result, Row


def heading(result: Result) -> Iterator[str]:
    workers = f"{result.workers} worker" + ("s" if result.workers > 1 else "")
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    load = " ".join(f"{load:.1f}" for load in result.load)
    yield f"a holder and {workers} for each way, {result.cores} cores · {versions}"
    yield f"load {load} · {result.rounds} rounds, all parameters checked"
    yield ""
    yield (
        f"{'way':<11}{'steps/s':>9}{'times ours':>12} {'':<16}{'computes ms':>12}"
        f"{'updates ms':>12}{'moves ms':>10}{'share':>7}{'CPU ms':>9}{'times ours':>12}"
    )


def row_lines(row: Row) -> Iterator[str]:
    tensor, step = text_of_size(round(row.mean_tensor_bytes)), text_of_size(row.bytes_per_step)
    yield (
        f"{row.model}: {row.tensors} tensors of {tensor} on average, {step} a step, "
        f"{row.gb_per_s_of_computation:.2g} GB per second of computation"
    )
    for name, one in row.ways.items():
        form = f"  {one.form}" if one.form else ""
        yield (
            f"  {name:<9}{one.steps_per_s:>9.1f}{one.slower.median:>12.2f} {one.slower.between:<16}"
            f"{one.computation_ms:>12.2f}{one.update_ms:>12.2f}{one.communication_ms:>10.2f}"
            f"{one.communication_ms / one.step_ms:>7.0%}{one.cpu_ms:>9.1f}"
            f"{one.cpu.median:>12.2f}{form}"
        )
