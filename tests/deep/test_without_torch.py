"""Where torch is not installed, the networks say so, and nothing else misses it."""

import subprocess
import sys

PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Missing())
import twofold
twofold.PCA(1).fit([[0., 1.], [2., 3.], [4., 4.]])
print(len(dir(twofold)) > 50)
twofold.VAE
"""


def test_the_message_names_the_extra_and_the_rest_works():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.stdout == "True\n" and run.returncode != 0
    assert "pip install 'twofold[deep]'" in run.stderr.splitlines()[-1]
