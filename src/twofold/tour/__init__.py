"""The tour: every family at work on bundled data. A family adds a station, which is one function.

STATIONS  name → "module:function";  the function takes a seed and returns a Station
EXTRAS    name → (package, extra) of stations that need more than the core; they are left out where it is missing
"""

STATIONS = {
    "Lines, planes and Gaussians": "twofold.tour.linear:station",
    "Groups, hard and soft": "twofold.tour.clusters:station",
    "Tables with holes, and recommenders": "twofold.tour.completion:station",
    "Documents as mixtures of topics": "twofold.tour.topics:station",
    "Words by the company they keep": "twofold.tour.words:station",
    "Signals in few numbers": "twofold.tour.signals:station",
    "Networks and generators": "twofold.tour.deep:station",
}
EXTRAS = {"Networks and generators": ("torch", "deep")}
