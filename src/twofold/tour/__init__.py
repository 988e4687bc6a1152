"""The tour: every family at work on bundled data.

A family adds a station: a module whose ``station(seed)`` returns parts by name, and a template that writes about them.

STATIONS  title → module and template of that name
EXTRAS    title → (package, extra) of stations that need more than the core; they are left out where it is missing
"""

STATIONS = {
    "Lines, planes and Gaussians": "linear",
    "Groups, hard and soft": "clusters",
    "Tables with holes, and recommenders": "completion",
    "Documents as mixtures of topics": "topics",
    "Words by the company they keep": "words",
    "Signals in few numbers": "signals",
    "Networks and generators": "deep",
}
EXTRAS = {"Networks and generators": ("torch", "deep")}
