"""Formulas: the text that is printed is the text that is evaluated.

A small arithmetic language (a checked subset of Python expressions): ``+ - * / ** %``, comparisons,
``where(cond, a, b)``, and the functions in `FUNCTIONS`. Each formula is parsed once, its dimensions are
checked once per set of input units, and the compiled code then runs on numbers or NumPy arrays alike.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ridgeline.core.units import COUNTING, Dims, spell

Number = int | float | np.ndarray[Any, Any]


def _either(scalar: Callable[..., Any], array: Callable[..., Any]) -> Callable[..., Any]:
    """Python's function on plain numbers (integers stay exact), NumPy's on arrays."""

    def call(*args: Any) -> Any:
        return array(*args) if any(isinstance(arg, np.ndarray) for arg in args) else scalar(*args)

    return call


def _reduce(pairwise: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        result = args[0]
        for arg in args[1:]:
            result = pairwise(result, arg)
        return result

    return call


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": _either(min, _reduce(np.minimum)),
    "max": _either(max, _reduce(np.maximum)),
    "abs": abs,
    "sqrt": _either(math.sqrt, np.sqrt),
    "exp": _either(math.exp, np.exp),
    "log": _either(math.log, np.log),
    "log10": _either(math.log10, np.log10),
    "log2": _either(math.log2, np.log2),
    "ceil": _either(math.ceil, np.ceil),
    "floor": _either(math.floor, np.floor),
    "round": _either(round, np.round),
    "where": _either(lambda test, yes, no: yes if test else no, np.where),
    "count": lambda value: value,  # drops counting units: 8192 tokens -> 8192 keys
}
_KEEP = {"min", "max", "abs", "ceil", "floor", "round"}
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Compare,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.USub,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


class FormulaError(ValueError):
    """A formula of ours is wrong: unknown name, unused input, unit mismatch. A bug, not a user's mistake."""


@dataclass(frozen=True)
class Formula:
    """A parsed formula: its text, its names in reading order, and its code."""

    text: str
    names: tuple[str, ...]
    tree: ast.expr
    code: CodeType

    def evaluate(self, values: Mapping[str, Number]) -> Number:
        """The value in base units."""
        result: Number = eval(self.code, {"__builtins__": {}}, {**FUNCTIONS, **values})  # nodes are whitelisted
        return result

    def dims(self, inputs: Mapping[str, Dims]) -> Dims:
        """The dimensions of the result, or `FormulaError` where they do not fit together."""
        return _dims(self.tree, inputs, self.text)


@lru_cache(maxsize=4096)
def parse(text: str) -> Formula:
    """Parse once; refuse anything that is not plain arithmetic."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise FormulaError(f"formula does not parse: {text!r}") from error
    for node in ast.walk(tree):
        if not isinstance(node, _NODES) or (isinstance(node, ast.Compare) and len(node.ops) != 1):
            raise FormulaError(f"{type(node).__name__} is not allowed in a formula: {text!r}")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise FormulaError(f"only numbers may stand in a formula: {text!r}")
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    unknown = [ast.unparse(f) for f in called if not isinstance(f, ast.Name) or f.id not in FUNCTIONS]
    if unknown:
        raise FormulaError(f"unknown function {unknown[0]} in {text!r}")
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called]
    ordered = dict.fromkeys(n.id for n in sorted(names, key=lambda n: n.col_offset))
    return Formula(text, tuple(ordered), tree.body, compile(tree, "<formula>", "eval"))


def _dims(node: ast.expr, inputs: Mapping[str, Dims], text: str) -> Dims:
    if isinstance(node, ast.Constant):
        return {}
    if isinstance(node, ast.Name):
        return inputs[node.id]
    if isinstance(node, ast.UnaryOp):
        return _dims(node.operand, inputs, text)
    if isinstance(node, ast.Compare):
        _equal([node.left, *node.comparators], inputs, text)
        return {}
    if isinstance(node, ast.Call):
        return _call_dims(node, inputs, text)
    assert isinstance(node, ast.BinOp), node  # parse() lets nothing else through
    return _operator_dims(node, inputs, text)


def _operator_dims(node: ast.BinOp, inputs: Mapping[str, Dims], text: str) -> Dims:
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mod):
        return _equal([node.left, node.right], inputs, text)
    left, right = _dims(node.left, inputs, text), _dims(node.right, inputs, text)
    if isinstance(node.op, ast.Mult):
        return _combine(left, right, 1)
    if isinstance(node.op, ast.Div):
        return _combine(left, right, -1)
    if right:
        raise FormulaError(f"an exponent must be a plain number, not {spell(right)}, in {text!r}")
    power = _literal(node.right)
    if power is not None:
        return {dim: p * power for dim, p in left.items() if p * power}
    if any(dim not in COUNTING for dim in left):
        raise FormulaError(f"a fitted power needs a count or a plain number, not {spell(left)}, in {text!r}")
    return {}  # an empirical law, N**alpha: reads the count, gives a plain number


def _call_dims(node: ast.Call, inputs: Mapping[str, Dims], text: str) -> Dims:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name in _KEEP:
        return _equal(node.args, inputs, text)
    if name == "where":
        _dims(node.args[0], inputs, text)
        return _equal(node.args[1:], inputs, text)
    argument = _dims(node.args[0], inputs, text)
    if name == "sqrt":
        return {dim: p / 2 for dim, p in argument.items()}
    physical = {dim: p for dim, p in argument.items() if dim not in COUNTING}
    if name == "count":
        return physical
    if physical or (name == "exp" and argument):
        raise FormulaError(f"{name}() needs a plain number, not {spell(argument)}, in {text!r}")
    return {}


def _equal(nodes: list[ast.expr], inputs: Mapping[str, Dims], text: str) -> Dims:
    """The common dimensions of several terms. The literal 0 fits beside anything."""
    every = [(node, _dims(node, inputs, text)) for node in nodes]
    counted = [dims for node, dims in every if not (isinstance(node, ast.Constant) and node.value == 0)]
    for dims in counted[1:]:
        if dims != counted[0]:
            raise FormulaError(f"{spell(counted[0])} and {spell(dims)} cannot be combined in {text!r}")
    return counted[0] if counted else {}


def _combine(left: Dims, right: Dims, sign: int) -> Dims:
    total = dict(left)
    for dim, power in right.items():
        total[dim] = total.get(dim, 0) + sign * power
    return {dim: power for dim, power in total.items() if power}


def _literal(node: ast.expr) -> float | None:
    """The value of an exponent written as numbers only, such as ``2`` or ``-1/2``."""
    if any(isinstance(child, ast.Name | ast.Call) for child in ast.walk(node)):
        return None
    return float(eval(compile(ast.Expression(node), "<exponent>", "eval"), {"__builtins__": {}}))
