"""HLO dumps as files: plain or gzipped, read as far as they go. The text itself is read by `arithmetic.hlo`."""

from dataclasses import replace
from pathlib import Path

from ridgeline.arithmetic.hlo import parse
from ridgeline.arithmetic.hlo_module import HloModule
from ridgeline.trace import salvage


def read(path: str | Path) -> HloModule:
    """Read an HLO dump, plain or gzipped. Raises `InputError` for a file that holds no instruction of HLO."""
    ledger = salvage.Ledger(str(path))
    module = parse(salvage.whole(path, ledger).decode("utf-8", "replace"), str(path))
    return replace(module, lost=(*ledger.losses(), *module.lost))
