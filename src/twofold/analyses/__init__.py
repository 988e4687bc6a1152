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
from twofold.analyses.embed import embed
from twofold.analyses.recommend import recommend
from twofold.analyses.reduce import reduce
from twofold.analyses.topics import topics

__all__ = [
    "Answer",
    "apply",
    "cluster",
    "complete",
    "embed",
    "recommend",
    "reduce",
    "topics",
]
