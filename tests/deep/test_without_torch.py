"""Where torch is not installed, the networks say so, and nothing else misses it."""

import subprocess
import sys

BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Missing())
import twofold
"""


def run(code):
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_the_message_names_the_extra():
    found = run("twofold.VAE")
    assert found.returncode != 0
    assert "pip install 'twofold[deep]'" in found.stderr.splitlines()[-1]


def test_the_rest_works():
    code = "from twofold import PCA; PCA(1).fit([[0., 1.], [2., 3.], [4., 4.]]); print(len(dir(twofold)) > 50)"
    assert run(code).stdout == "True\n"
