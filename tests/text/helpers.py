"""The words of a text, found one character at a time; the memory that a fit takes."""

import subprocess
import sys
import unicodedata

JOINERS = "'\u200c\u200d"


def read_slowly(text, lowercase=True, min_length=1, numbers=True):
    """Runs of letters, marks and digits, with apostrophes inside; with a digit only if `numbers`."""
    text = unicodedata.normalize("NFC", (text.lower() if lowercase else text).replace("’", "'").replace("\u00ad", ""))
    words, run = [], ""
    for at, c in enumerate(text + " "):
        double = c == "'" and "'" in (text[at - 1 : at], text[at + 1 : at + 2])
        if (unicodedata.category(c)[0] in "LMN" or c in JOINERS) and not double:
            run += c
            continue
        run = run.strip(JOINERS)
        while run and unicodedata.category(run[0])[0] == "M":
            run = run[1:].strip(JOINERS)
        kinds = {unicodedata.category(r)[0] for r in run}
        if len(run) >= min_length and (numbers or ("L" in kinds and "N" not in kinds)) and run:
            words.append(run)
        run = ""
    return words


SCRIPT = """
import sys
import twofold

def peak():  # of this program alone: getrusage would count the one that started it
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

with twofold.config(threads=2, memory="30MB"):
    for path in sys.argv[1:]:
        before = peak()
        {fit}
print(peak() - before, size)
"""


def measure_growth(fit, small, big):
    """MB that fit(path), a line of code which sets `size`, takes for `big` after `small`; and that size."""
    command = [sys.executable, "-c", SCRIPT.replace("{fit}", fit), str(small), str(big)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    growth, size = done.stdout.split()
    return float(growth), int(size)
