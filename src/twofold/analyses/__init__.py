"""What each verb of the command line does, as a function: on a path, a frame or an array.

    from twofold import analyses
    answer = analyses.cluster("wine.csv")
    answer.table, answer.figures, answer.baseline, answer.notes, answer.model, answer.code
    answer.plot(); answer.save("groups.html")

Models are imported when a function is called, so that importing this package is quick.
"""

from twofold.analyses.answer import Answer
from twofold.analyses.apply import apply
from twofold.analyses.cluster import cluster
from twofold.analyses.complete import complete
from twofold.analyses.compress import compress
from twofold.analyses.denoise import denoise
from twofold.analyses.embed import embed
from twofold.analyses.generate import generate
from twofold.analyses.inpaint import inpaint
from twofold.analyses.recommend import recommend
from twofold.analyses.reduce import reduce
from twofold.analyses.sense import sense
from twofold.analyses.topics import topics
from twofold.analyses.train import train

__all__ = [
    "Answer",
    "apply",
    "cluster",
    "complete",
    "compress",
    "denoise",
    "embed",
    "generate",
    "inpaint",
    "recommend",
    "reduce",
    "sense",
    "topics",
    "train",
]
