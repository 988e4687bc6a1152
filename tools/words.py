"""Names and sentences that have to be read twice: no rule may have more offenders than MAX_OFFENDERS allows.

    python tools/words.py             check all rules
    python tools/words.py argument    list the offenders of one

A function is a verb in the imperative, a constant says quantity and unit, a docstring is a sentence with a verb.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_OFFENDERS = {  # may only fall
    "src": {
        "participle": 11,
        "argument": 33,
        "person": 5,
    },
    "tests": {
        "participle": 8,
        "docstring without a verb": 3,
        "argument": 11,
        "person": 4,
        "archaic": 2,
    },
}
NOT_PARTICIPLES = "based|bed|embed|exceed|feed|fixed|indeed|led|need|nested|proceed|red|seed|shared|speed|supervised"
IRREGULAR = (
    "begun|broken|chosen|done|drawn|found|given|grown|held|hidden|kept|known|left|lost|made|said|seen|sent|shown|stuck|"
    "taken|told|written"
)
PARTICIPLE = re.compile(rf"_*(?!(?:{NOT_PARTICIPLES})(?:_|$))(?:{IRREGULAR}|[a-z]+ed)(?:_|$)")
VAGUE = re.compile(
    "_*(?:AHEAD|ALIKE|ASK|CLEARLY|CLIMB|CLOSE|EACH|ENDS|ENOUGH|FEW|FEWEST|LEAST|LINGER|LITTLE|MOST|NEAR|NOTHING|OFTEN|"
    "PACE|PATIENCE|PAUSE|PLENTY|REACH|SAID|SETTLES?|SETTLED|SHAKY|SLOW|STILL|SURE|TELLING|TURNS|TWICE|USUAL|WATCHED)"
    "(?:_|$)"
)
UNCLEAR_ARGUMENT = re.compile("found|given|here|how|least|mine|most|one|others|own|rest|said|tell|there|told|what|who")
QUESTION = re.compile("(?:How|What|Where|Whether|Which|Who)\\b")
PHRASES = {
    "person": r"who|whoever|(?:no|every|any)body",
    "metaphor": r"speaks?|watch(?:es|er)|blamed?|praised?|hesitates?|believed?|foretells?|foretold|creeps?",
    "archaic": r"so many|so long as|anew|thereof|therein|alike|as wished|for ever|no more|ever fewer",
}
PATTERNS = {rule: re.compile(rf"\b(?:{words})\b") for rule, words in PHRASES.items()}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]{2,}")
MIN_SENTENCE_LENGTH = 26  # characters: shorter strings are names and keys

Offender = tuple[str, int, str]  # rule, line, text


def check_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Offender]:
    if node.name.startswith("test"):
        return
    if PARTICIPLE.match(node.name) and not any("property" in ast.unparse(mark) for mark in node.decorator_list):
        yield "participle", node.lineno, node.name
    text = ast.get_docstring(node)
    if text and QUESTION.match(text):
        yield "docstring without a verb", node.lineno, text.splitlines()[0]


def check_string(node: ast.Constant, options: bool) -> Iterator[Offender]:
    """Yield the phrases of a string that is a sentence; `options` says whether it may spell options."""
    if not isinstance(node.value, str) or len(node.value) < MIN_SENTENCE_LENGTH:
        return
    patterns = PATTERNS if options else {**PATTERNS, "option below cli": OPTION}
    for rule, pattern in patterns.items():
        if match := pattern.search(node.value):
            yield rule, node.lineno, match[0]


def check_constants(tree: ast.Module) -> Iterator[Offender]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and VAGUE.match(name.id):
                    yield "vague constant", node.lineno, name.id


def check_file(path: str) -> Iterator[Offender]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    options = not path.startswith("src/") or "/cli/" in path
    yield from check_constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from check_function(node)
        elif isinstance(node, ast.arg) and UNCLEAR_ARGUMENT.fullmatch(node.arg):
            yield "argument", node.lineno, node.arg
        elif isinstance(node, ast.Constant):
            yield from check_string(node, options)


def main() -> int:
    listed = " ".join(sys.argv[1:])
    failed = False
    for folder, allowed in MAX_OFFENDERS.items():
        paths = subprocess.run(
            ["git", "ls-files", f"{folder}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        offenders = defaultdict(list)
        for path in paths.stdout.split():
            if (ROOT / path).exists():
                for rule, line, text in check_file(path):
                    offenders[rule].append(f"{path}:{line}: {text}")
        counts = Counter({rule: len(lines) for rule, lines in offenders.items()})
        for rule in sorted(allowed.keys() | counts.keys()):
            if rule == listed or counts[rule] > allowed.get(rule, 0):
                print(*offenders[rule], sep="\n")
            if counts[rule] != allowed.get(rule, 0):
                print(f"tools/words.py: {folder}: {rule}: {counts[rule]}, allowed are {allowed.get(rule, 0)}")
            failed |= counts[rule] > allowed.get(rule, 0)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
