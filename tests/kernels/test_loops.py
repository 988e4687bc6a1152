"""Kernels give the same bits wherever their arrays lie in memory.

A loop that may be reassociated is compiled twice where it also writes: in wide steps for arrays that lie apart, and
step by step for arrays that lie close to each other. A sum has another order in each. So a loop that sums does not
write.
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
    """What is added to in every step: a number, or one place of an array."""
    moving = depends(loop)
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            if isinstance(node.target, ast.Name) and not isinstance(node.value, ast.Constant):
                yield node.target.id, False
            if isinstance(node.target, ast.Subscript) and not names(node.target) & moving:
                yield ast.unparse(node.target), True


def writes(loop):
    return any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in ast.walk(loop))


def offences(source):
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and any("fastmath" in ast.unparse(d) for d in function.decorator_list):
            for loop in innermost_loops(function):
                for name, placed in sums(loop):
                    if placed or writes(loop):
                        yield loop.lineno, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_loop_that_sums_does_not_write(path):
    assert not [(line, name) for line, name in offences(path.read_text()) if (path.name, name) not in EXACT]


@pytest.mark.parametrize("body", ["s += x[c]\n        y[c] = x[c]", "y[i] += x[c]"])
def test_the_search_finds_such_loops(body):
    source = f"@njit(fastmath=True)\ndef f(x, y, i):\n    s = 0.0\n    for c in range(3):\n        {body}\n    return s"
    assert list(offences(source))
