"""What lies beside traces, or is all there is: compiler text, kernel counters and kernel summaries."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ridgeline.arithmetic.hlo import HloModule, is_hlo
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace import hlo, salvage
from ridgeline.trace.levels.l2 import Operations
from ridgeline.trace.readers import ncu, nsys_stats
from ridgeline.trace.readers.ncu import KernelCounters
from ridgeline.trace.readers.nsys_stats import KernelSummary

SUFFIXES = (".txt", ".hlo", ".csv", ".gz")


@dataclass(frozen=True)
class Dumps:
    """The HLO modules, the counters of kernels, the summaries over kernels; what of them could not be read.

    ``files``: where they are from.
    """

    hlo: tuple[HloModule, ...] = ()
    ncu: tuple[KernelCounters, ...] = ()
    sums: tuple[KernelSummary, ...] = ()
    files: tuple[Path, ...] = ()
    lost: tuple[Loss, ...] = ()

    def operations(self, device: Device | None) -> Operations | None:
        """What the rules on operations see without a trace; None without compiler text and counters."""
        if not self.hlo and not self.ncu:
            return None
        return Operations(
            rank="", device=device, sm_count=None, steps=1, rows=(), work_ns=0, unlinked_ns=0, kernels=0,
            small=(0, 0, 0), recompute=None, hlo=self.hlo, ncu=self.ncu,
        )  # fmt: skip


def find(paths: Sequence[Path]) -> Dumps:
    """The dumps among files and in folders; a file that is given by name may be called anything.

    What cannot be read is counted as lost. Raises `InputError` where it is the only file given.
    """
    found = Dumps()
    for file in dict.fromkeys(file for path in paths for file in candidates(path, SUFFIXES, named=True)):
        try:
            found = _with(found, file)
        except InputError as error:
            if list(paths) == [file]:
                raise
            loss = Loss(f"dump not read: {error.message}", 1, str(file))
            found = Dumps(found.hlo, found.ncu, found.sums, found.files, (*found.lost, loss))
    return found


def _with(found: Dumps, file: Path) -> Dumps:
    """The dumps and what the file holds."""
    start = salvage.head(file)
    text = start.decode("utf-8", "replace")
    modules, counters, sums, lost = found.hlo, found.ncu, found.sums, found.lost
    if is_hlo(text):
        modules = (*modules, hlo.read(file))
        lost = (*lost, *modules[-1].lost)
    elif ncu.is_ncu(text):
        report = ncu.read(file)
        counters, lost = (*counters, *report.kernels), (*lost, *report.lost)
    elif nsys_stats.sniff(start, file):
        sums = (*sums, nsys_stats.read(file))
        lost = (*lost, *sums[-1].lost)
    else:
        return found
    return Dumps(modules, counters, sums, (*found.files, file), lost)


def candidates(path: Path, suffixes: Sequence[str], *, named: bool = False) -> list[Path]:
    """The files of a folder with such a suffix; of a file, itself (``named``: whatever its suffix)."""
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in inside if file.is_file() and (file.suffix.lower() in suffixes or (named and file == path))]
