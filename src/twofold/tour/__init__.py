"""The tour: every family at work on bundled data. A family adds a station, which is one function.

STATIONS  name → "module:function";  the function takes a seed and returns a Station
"""

STATIONS = {
    "Lines, planes and Gaussians": "twofold.tour.linear:station",
    "Groups, hard and soft": "twofold.tour.clusters:station",
    "Tables with holes, and recommenders": "twofold.tour.completion:station",
    "Documents as mixtures of topics": "twofold.tour.topics:station",
    "Words by the company they keep": "twofold.tour.words:station",
}
