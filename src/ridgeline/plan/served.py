"""What serving costs, from a case of ``ridgeline serve`` among the evidence of a study.

A case prices output tokens of one model at one length of prompt and answer; a study's traffic counts prompts and
answers alike, and its candidates have other sizes. The price of a served token is the case's, spread over the prompt
too, and in proportion to the parameters that a token uses: what a token costs on chips that are full either way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgeline.arithmetic.inputs import require_positive
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, leaf

PRICE = "serve.dollars_per_million_tokens"
# The model's size, and the lengths that the price is for, under the names that a serving case gives them.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "size": ("params.active", "params.total"), "prompt": ("serve.prompt",), "output": ("serve.output",),
}  # fmt: skip


@dataclass(frozen=True)
class Served:
    """``price`` (USD/(1e6*token)) of a served token, prompt or answer, of a model with ``size`` parameters a token."""

    price: Quantity
    size: Quantity

    def cost(self, params: Quantity, served: Quantity, prefix: str) -> Quantity:
        """``<prefix>.serving_cost`` (USD) of so many served tokens on a model of another size."""
        inputs = {"price": self.price, "served": served, "params": params, "size": self.size}
        return derive(f"{prefix}.serving_cost", "price*served*params/size", "USD", **inputs)


def served_price(documents: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Served | None, list[str]]:
    """The first case, by name of its file, that prices served tokens; and why others with a price do not count.

    ``documents`` are cases as plain documents with the names of their files.
    """
    unused: list[str] = []
    for name, document in documents:
        quantities = document["quantities"]
        if PRICE not in quantities:
            continue
        found = {key: next((n for n in names if n in quantities), "") for key, names in NEEDED.items()}
        missing = [NEEDED[key][0] for key, own in found.items() if not own]
        if missing:
            unused.append(f"{name}: its price of served tokens is not used, it lacks {', '.join(missing)}")
            continue
        try:
            return _served(name, document, found), unused
        except InputError as error:
            unused.append(f"{name}: its price of served tokens is not used: {error.message}")
    return None, unused


def _served(name: str, document: Mapping[str, Any], found: Mapping[str, str]) -> Served:
    source = Source(str(document.get("title") or name), f"evidence/{name}, by ridgeline {document['tool']}")

    def stated(own: str, theirs: str) -> Quantity:
        entry = document["quantities"][theirs]
        return leaf(f"served.{own}", entry["value"], entry["unit"], "measured", source, str(entry.get("note", "")))

    price = stated("price_of_output", PRICE).titled("Price of output tokens, from the evidence")
    size = stated("size", found["size"]).titled("Parameters a token of the model that was priced")
    prompt, output = (stated(key, found[key]) for key in ("prompt", "output"))
    require_positive(price, size, output)
    spread = derive(
        "served.price", "price*output/(prompt + output)", "USD/(1e6*token)", price=price, prompt=prompt, output=output
    )
    return Served(spread.titled("Price of a million served tokens, prompts included"), size)
