"""Files, functions, parameters and options stay small."""

import ast

from tests.house.source import Function, functions, modules, params_of, shown

from ridgeline.cli.main import commands

FILE_LINES, BODY_LINES, PARAMETERS, OPTIONS = 600, 60, 7, 12


def body_lines(function: Function) -> int:
    """Lines of a function without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def parameters(function: Function) -> int:
    """Parameters that a caller fills in."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([a for a in every if a.arg not in ("self", "cls")])


def test_files() -> None:
    lines = {shown(p): len(p.read_text(encoding="utf-8").splitlines()) for p in modules()}
    assert {name: count for name, count in lines.items() if count > FILE_LINES} == {}


def test_function_bodies() -> None:
    long = [
        f"{shown(p)}:{f.lineno} {f.name} has {body_lines(f)} lines"
        for p in modules()
        for f in functions(p)
        if body_lines(f) > BODY_LINES
    ]
    assert long == []


def test_parameters() -> None:
    many = [
        f"{shown(p)}:{f.lineno} {f.name} has {parameters(f)} parameters"
        for p in modules()
        for f in functions(p)
        if parameters(f) > PARAMETERS and not (f.name == "command" and p.parent.name == "cli")
    ]
    assert many == []


def test_options_of_a_command() -> None:
    many = {name: len(params_of(name)) for name in commands() if len(params_of(name)) > OPTIONS}
    assert many == {}
