"""Kernels give the same bits wherever their arrays lie in memory, and whether they were compiled now or long ago.

A loop that may be reassociated is compiled twice where it also writes: in wide steps for arrays that lie apart, and
step by step for arrays that lie close to each other. A sum has another order in each. So a loop that sums does not
write.

A kernel that comes from the cache brings the functions it calls as they were inlined or not at the time; one that is
compiled now may find another copy of them. So a function that may be reassociated is part of those that call it.
"""

import ast
from pathlib import Path

import pytest

import twofold.kernels

FILES = sorted(Path(twofold.kernels.__file__).parent.glob("*.py"))
EXACT = {
    ("kl.py", "total"),  # behind a logarithm, which is computed one number at a time
    ("nnls.py", "left"),  # ones and zeros
}
APART = {"ridge.py", "skip_gram.py", "small_products.py"}  # slower as parts of others, and the same bits all the same


def innermost_loops(function):
    for loop in ast.walk(function):
        inner = [node for node in ast.walk(loop) if node is not loop and isinstance(node, ast.For | ast.While)]
        if isinstance(loop, ast.For) and not inner:
            yield loop


def names(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def depends(loop):
    """The names that change from step to step."""
    found = names(loop.target)
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and names(node.value) & found:
            found |= {name for target in node.targets for name in names(target)}
    return found


def sums(loop):
    """Yield the targets of sums in every step: a number, or one place of an array."""
    moving = depends(loop)
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            if isinstance(node.target, ast.Name) and not isinstance(node.value, ast.Constant):
                yield node.target.id, False
            if isinstance(node.target, ast.Subscript) and not names(node.target) & moving:
                yield ast.unparse(node.target), True


def writes(loop):
    return any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in ast.walk(loop))


def find_compiled(source):
    """Functions that are compiled, with what the compiler is told."""
    for node in ast.parse(source).body:
        told = " ".join(map(ast.unparse, getattr(node, "decorator_list", [])))
        if isinstance(node, ast.FunctionDef) and "njit" in told:
            yield node, told


def offences(source):
    for function, told in find_compiled(source):
        for loop in innermost_loops(function) if "fastmath" in told else ():
            for name, placed in sums(loop):
                if placed or writes(loop):
                    yield loop.lineno, name


def find_called(sources):
    """The names that compiled functions call."""
    calls = (node for s in sources for function, _ in find_compiled(s) for node in ast.walk(function))
    return {node.func.id for node in calls if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def outside(source, wanted):
    """Functions that may be reassociated and that others call, but that are not part of them."""
    for function, told in find_compiled(source):
        inside = "forceinline=True" in told or "inline='always'" in told
        if function.name in wanted and "fastmath" in told and not inside:
            yield function.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_loop_that_sums_does_not_write(path):
    assert not [(line, name) for line, name in offences(path.read_text()) if (path.name, name) not in EXACT]


@pytest.mark.parametrize("body", ["s += x[c]\n        y[c] = x[c]", "y[i] += x[c]"])
def test_the_search_finds_such_loops(body):
    source = f"@njit(fastmath=True)\ndef f(x, y, i):\n    s = 0.0\n    for c in range(3):\n        {body}\n    return s"
    assert list(offences(source))


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in APART], ids=lambda path: path.name)
def test_what_kernels_call_is_part_of_them(path):
    assert not list(outside(path.read_text(), find_called(path.read_text() for path in FILES)))


def test_the_search_finds_functions_outside():
    helper = "@njit(fastmath=True{})\ndef helper(x):\n    return x.sum()\n"
    kernel = "@njit(fastmath=True)\ndef kernel(x):\n    return helper(x)\n"
    assert list(outside(helper.format("") + kernel, find_called([kernel]))) == ["helper"]
    assert not list(outside(helper.format(", forceinline=True") + kernel, find_called([kernel])))
