"""Published scaling laws: the loss of (N, D), the compute-optimal (N, D), and what a deviation from it costs.

``parametric``  L = E + A/N^alpha + B/D^beta              (Hoffmann et al. 2022, approach 3)
``coupled``     L = E + (A/N^alpha + B/D^beta)^gamma      (the same optimum: the bracket is what is minimized)
``power``       N or D = a*C^b
``ratio``       D = ratio*N
``moe_joint``   dense and mixture-of-experts models in one law (Ludziejewski et al. 2025): `joint_loss`

All with C = 6*N*D. Inputs may be arrays of candidates. The constants are in ``core/data/laws``.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.budget import params_at_ratio, tokens_for
from ridgeline.arithmetic.inputs import require_positive
from ridgeline.core.errors import InputError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, Source, derive, leaf

LOSS_KINDS = ("parametric", "coupled")
OPTIMUM_KINDS = (*LOSS_KINDS, "power", "ratio")
# Experts that count, saturating between E_start at one and E_max (Clark et al. 2022, arXiv:2202.01169, section 3).
SATURATING = "(1/(1/(experts - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max))"
JOINT_SIZE = f"a*{SATURATING}**delta*N**(alpha + gamma*log({SATURATING}))"
JOINT_DATA = f"b*{SATURATING}**omega*D**(beta + zeta*log({SATURATING}))"


@dataclass(frozen=True)
class Optimum:
    """The compute-optimal model under one law. ``loss`` is None for a law that gives no loss."""

    law: Law
    params: Quantity
    tokens: Quantity
    tokens_per_param: Quantity
    loss: Quantity | None


def loss(law: Law, params: Quantity, tokens: Quantity, name: str) -> Quantity:
    """The predicted loss in nats per token. Raises `InputError` for a law that gives none."""
    _require_loss(law)
    require_positive(params, tokens)
    bracket = "A/N**alpha + B/D**beta"
    text = f"E + {bracket}" if law.kind == "parametric" else f"E + ({bracket})**gamma"
    return derive(name, text, "nat", N=params, D=tokens, **law.constants).titled("Predicted loss", law.name)


def optimum(law: Law, compute: Quantity, prefix: str) -> Optimum:
    """The (N, D) that a law calls optimal at this compute: ``<prefix>.params``, ``.tokens``, ``.tokens_per_param``."""
    require_positive(compute)
    params = _optimal_params(law, compute, prefix).titled("Compute-optimal parameters", law.name)
    tokens = tokens_for(compute, params).named(f"{prefix}.tokens").titled("Compute-optimal tokens", law.name)
    ratio = derive(f"{prefix}.tokens_per_param", "tokens/params", "token/param", tokens=tokens, params=params)
    predicted = loss(law, params, tokens, f"{prefix}.loss") if law.kind in LOSS_KINDS else None
    return Optimum(law, params, tokens, ratio.titled("Tokens per parameter"), predicted)


def _optimal_params(law: Law, compute: Quantity, prefix: str) -> Quantity:
    name, c = f"{prefix}.params", law.constants
    if law.kind == "ratio":
        return params_at_ratio(compute, c["ratio"]).named(name)
    if law.kind in LOSS_KINDS:
        shape = {symbol: c[symbol] for symbol in ("A", "alpha", "B", "beta")}
        balance = derive(f"{prefix}.balance", "(alpha*A/(beta*B))**(1/(alpha + beta))", "1", **shape)
        text = "balance*(count(compute)/6)**(beta/(alpha + beta))"
        return derive(name, text, "param", balance=balance, compute=compute, alpha=c["alpha"], beta=c["beta"])
    if law.kind != "power":
        raise InputError.expected("a law that says where the optimum lies", law.slug, where="the law")
    if law.predicts == "params":
        return derive(name, "a*count(compute)**b", "param", compute=compute, a=c["a"], b=c["b"])
    fitted = derive(f"{prefix}.fitted_tokens", "a*count(compute)**b", "token", compute=compute, a=c["a"], b=c["b"])
    return derive(name, "compute/(6*tokens)", "param", compute=compute, tokens=fitted)


def equivalent_compute(law: Law, best: Quantity, deviating: Quantity, name: str) -> Quantity:
    """The share of this compute with which an optimal run would reach the deviating loss, in percent.

    On the optimal frontier of a parametric law L - E falls as C^-(alpha*beta/(alpha + beta)), of a coupled one as
    that to the power gamma. Holds as far as the law itself does.
    """
    _require_loss(law)
    c = law.constants
    power, more = "(alpha + beta)/(alpha*beta)", {}
    if law.kind == "coupled":
        power, more = "(alpha + beta)/(alpha*beta*gamma)", {"gamma": c["gamma"]}
    text = f"((best - E)/(deviating - E))**({power})"
    inputs = {"best": best, "deviating": deviating, "E": c["E"], "alpha": c["alpha"], "beta": c["beta"], **more}
    return derive(name, text, "%", **inputs).titled("Worth of the compute", law.name)


def floor_params(law: Law, target: Quantity, name: str) -> Quantity:
    """The size below which no number of tokens reaches the target loss. Raises `InputError` for one below E."""
    gap, c = _gap(law, target, f"{name}.gap"), law.constants
    inputs = {"A": c["A"], "alpha": c["alpha"], "gap": gap}
    return derive(name, "(A/gap)**(1/alpha)", "param", **inputs)


def tokens_to_reach(law: Law, params: Quantity, target: Quantity, name: str) -> Quantity:
    """The D with which N parameters reach the target loss; N must be above `floor_params`."""
    gap = _gap(law, target, f"{name}.gap")
    inputs = {symbol: law.constants[symbol] for symbol in ("A", "alpha", "B", "beta")}
    return derive(name, "(B/(gap - A/N**alpha))**(1/beta)", "token", N=params, gap=gap, **inputs)


def joint_loss(law: Law, active: Quantity, tokens: Quantity, experts: Quantity, name: str) -> Quantity:
    """The loss (nat) of a mixture with ``active`` parameters and ``experts`` as wide as the dense layer (1: dense).

    Raises `InputError` for a law that is not a joint one.
    """
    size, data = _joint_terms(law, active, tokens, experts, name)
    text = "size + data + c"
    return derive(name, text, "nat", size=size, data=data, c=law.constants["c"]).titled("Predicted loss", law.name)


def dense_equivalent(law: Law, active: Quantity, tokens: Quantity, experts: Quantity, name: str) -> Quantity:
    """The size (param) of the dense model that has a mixture's loss after the same tokens, under a joint law.

    Not a number where the mixture's loss lies below what the dense law reaches at any size, in arrays of candidates.
    """
    size, data = _joint_terms(law, active, tokens, experts, name)
    one = leaf(f"{name}.dense.experts", 1, "1", "specified", Source("a dense model", "one expert"))
    _, plain = _joint_terms(law, active, tokens, one, f"{name}.dense")
    fold = derive(f"{name}.dense.fold", SATURATING, "1", experts=one, **_saturation(law))
    inputs = {"size": size, "data": data, "plain": plain, "fold": fold}
    inputs |= {symbol: law.constants[symbol] for symbol in ("a", "alpha", "gamma", "delta")}
    text = "((size + data - plain)/(a*fold**delta))**(1/(alpha + gamma*log(fold)))"
    return derive(name, text, "param", **inputs).titled("Dense model with the same loss", law.name)


def _joint_terms(
    law: Law, active: Quantity, tokens: Quantity, experts: Quantity, name: str
) -> tuple[Quantity, Quantity]:
    """What size and data add to the floor of a joint law."""
    if law.kind != "moe_joint":
        raise InputError.expected("a joint law of dense and mixture-of-experts models", law.slug, where="the law")
    require_positive(active, tokens, experts)
    c, known = law.constants, {"experts": experts, **_saturation(law)}
    of_size = {"N": active, **known, **{symbol: c[symbol] for symbol in ("a", "alpha", "delta", "gamma")}}
    of_data = {"D": tokens, **known, **{symbol: c[symbol] for symbol in ("b", "beta", "omega", "zeta")}}
    return derive(f"{name}.size", JOINT_SIZE, "1", **of_size), derive(f"{name}.data", JOINT_DATA, "1", **of_data)


def _saturation(law: Law) -> dict[str, Quantity]:
    return {symbol: law.constants[symbol] for symbol in ("E_start", "E_max")}


def _gap(law: Law, target: Quantity, name: str) -> Quantity:
    """What the law's bracket must come to for the target loss."""
    _require_loss(law)
    c = law.constants
    if law.kind == "parametric":
        return derive(name, "target - E", "1", target=target, E=c["E"])
    return derive(name, "(target - E)**(1/gamma)", "1", target=target, E=c["E"], gamma=c["gamma"])


def _require_loss(law: Law) -> None:
    if law.kind not in LOSS_KINDS:
        raise InputError.expected("a law that predicts loss", law.slug, where="the law")
