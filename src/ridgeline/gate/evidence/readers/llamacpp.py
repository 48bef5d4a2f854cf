"""llama.cpp ``perplexity --kl-divergence``: the text block of its means. Nothing in it belongs to an example."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import content, head
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.samples import Samples

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"
_RATIO = re.compile(rf"Mean\s+ln\(PPL\(Q\)/PPL\(base\)\)\s*:\s*{_NUMBER}(?:\s*(?:±|\+/?-)\s*{_NUMBER})?")
_TOP = re.compile(rf"Same top p\s*:\s*{_NUMBER}(?:\s*(?:±|\+/?-)\s*{_NUMBER})?\s*%")
_MEAN = re.compile(rf"Mean\s+KLD\s*:\s*{_NUMBER}(?:\s*(?:±|\+/?-)\s*{_NUMBER})?")
_QUANTILE = re.compile(rf"^\s*(\d+(?:\.\d+)?%|Maximum|Median|Minimum)\s+KLD\s*:\s*{_NUMBER}", re.MULTILINE)
_NAMES = {"Maximum": "100%", "Median": "50%", "Minimum": "0%"}
DESCRIBES = "llama.cpp wrote means over tokens, so no example of one run can be paired with the same example of another"


@dataclass(frozen=True)
class Aggregate:
    """Means over all tokens, in nat. ``quantiles`` of the divergence by name (``99.9%``); ``same_top`` is a share.

    ``se`` takes tokens as independent, as llama.cpp does: within a chunk they are not, so it is too small.
    """

    ln_ppl_ratio: float
    se: float | None
    mean_kld: float | None
    quantiles: Mapping[str, float]
    same_top: float | None
    input: InputFile
    lost: tuple[Loss, ...] = ()


def sniff(path: Path) -> bool:
    """The block's own line, wherever it is in the head of the output, or at its end."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        end = file.read()
    return any(b"Mean ln(PPL(Q)/PPL(base))" in re.sub(rb"\s+", b" ", text) for text in (head(path), end))


def read(path: Path, wanted: Wanted) -> Samples:
    """Always refused: the figures are means. Raises `InputError` that says what they can be used for."""
    found = aggregate(path)
    hint = (
        f"{DESCRIBES}. The precision gate can only describe with it. For a decision, log both runs by example: "
        "lm-evaluation-harness --log_samples, or a table of losses"
    )
    got = f"a mean ln(PPL(Q)/PPL(base)) of {found.ln_ppl_ratio:g}"
    raise InputError.expected("results of single examples", got, where=str(path), hint=hint)


def aggregate(path: Path) -> Aggregate:
    """The block's figures; what it lacks is None and a `Loss`. Raises `InputError` where there is no ratio."""
    held = content(path)
    text = held.data.decode("utf-8", "replace")
    ratio, top, mean = _RATIO.search(text), _TOP.search(text), _MEAN.search(text)
    if ratio is None:
        raise InputError.expected("the block of --kl-divergence", "no mean ln(PPL(Q)/PPL(base))", where=str(path))
    value = _finite(ratio[1], path)
    quantiles = {_NAMES.get(name, name): _finite(number, path) for name, number in _QUANTILE.findall(text)}
    parts = {"standard error": ratio[2], "same top p": top, "mean KLD": mean, "KLD quantiles": quantiles}
    missing = tuple(Loss(f"figure that is not there: {name}", 1, path.name) for name, part in parts.items() if not part)
    return Aggregate(
        value,
        _finite(ratio[2], path) if ratio[2] else None,
        _finite(mean[1], path) if mean else None,
        quantiles,
        _finite(top[1], path) / 100 if top else None,
        held.file,
        (*held.lost, *missing),
    )


def _finite(text: str, path: Path) -> float:
    if "nan" in text.lower() or "inf" in text.lower():
        raise InputError.expected("a finite figure", text, where=str(path), hint="NaN logits are a broken run")
    return float(text)


READER = Reader("llamacpp", "llama.cpp perplexity --kl-divergence (means only)", sniff, read)
