"""The deep station: networks that tell digits apart, say them in two numbers, and draw new ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold import datasets
from twofold.core.seeds import generator
from twofold.deep import GAN, VAE, Autoencoder, CNNClassifier, PixelCNN, frechet_distance, sample_score
from twofold.linear import PCA
from twofold.plots.models import linear as plots
from twofold.tour.station import Part, Station, fit_briefly

HELD_OUT = 297  # digits that nothing learns from
ROW_PICTURES = 18
LEVELS = 17  # gray values of a pixel
SMALL: Any = {"hidden_layer_sizes": (128, 128), "learning_rate_init": 3e-3, "batch_size": 50}


class World(NamedTuple):
    """Digits to learn from and digits held out, and a network that tells them apart."""

    seen: np.ndarray  # (n,8,8)
    held: np.ndarray
    kinds: np.ndarray  # of the digits seen
    truth: np.ndarray  # of those held out
    judge: Any
    seed: int


def station(seed: int = 0) -> Station:
    """Show a network that reads, codes that bend, a walk between them, a forger and a critic, pixels in turn."""
    world = train_judge(seed)
    return Station(
        "Networks and generators",
        f"{len(world.seen):,} handwritten digits of 8 × 8 pixels, and {len(world.held)} more that nothing here learns "
        "from. A network is a chain of simple maps whose weights are found by following the gradient down. It may say "
        "what a picture is, say it in a few numbers, or draw pictures that were never written.",
        [reading(world), codes(world), walk(world), game(world), pixels(world)],
    )


def train_judge(seed: int) -> World:
    digits = datasets.digits()
    order = generator(seed, 13).permutation(len(digits.target))
    X, y = digits.images[order], digits.target[order]
    judge = CNNClassifier((16, 32), learning_rate_init=5e-3, batch_size=32, max_iter=6, random_state=seed)
    return World(X[HELD_OUT:], X[:HELD_OUT], y[HELD_OUT:], y[:HELD_OUT], judge.fit(X[HELD_OUT:], y[HELD_OUT:]), seed)


def flat(X: np.ndarray) -> np.ndarray:
    return X.reshape(len(X), -1)


def reading(w: World) -> Part:
    chances = w.judge.predict_proba(w.held)
    said = chances.argmax(axis=1)
    doubt = np.argsort(chances.max(axis=1))[:ROW_PICTURES]
    least = ", ".join(f"{said[i]}" if said[i] == w.truth[i] else f"{said[i]} (it is {w.truth[i]})" for i in doubt[:3])
    return Part(
        "A network that reads",
        "Small windows of 3 × 3 weights slide over the picture, the same ones everywhere, and look for edges and ends "
        "of strokes; behind them others look for what these have found. Backpropagation says how each weight should "
        "move so that the right class becomes likelier. Below are the digits of which the network is least sure.",
        "CNNClassifier((16, 32), max_iter=6).fit(images, target).score(new, truth)",
        plots.rows_figure({"least sure": w.held[doubt]}, (0, 16)),
        "Eighteen digits held out of which the network is least sure what they are.",
        {
            "right, of digits held out": f"{np.mean(said == w.truth):.1%}",
            "classes it is least sure of": least,
        },
    )


def codes(w: World) -> Part:
    pca = PCA(2).fit(flat(w.seen))
    bent = Autoencoder(2, hidden_layer_sizes=(128, 64), learning_rate_init=3e-3, max_iter=35, random_state=w.seed).fit(
        w.seen
    )
    again = pca.inverse_transform(pca.transform(flat(w.held)))
    lost = float(((flat(w.held) - again) ** 2).sum(axis=1).mean())
    return Part(
        "Straight codes, and bent ones",
        "An autoencoder is two networks: one says a picture in two numbers, the other draws it again from these. "
        "Without hidden layers the best they can do is PCA's plane. With hidden layers the plane may bend, and as many "
        "numbers say more. No digit is named to it: the colors were added later.",
        "Autoencoder(2, hidden_layer_sizes=(128, 64)).fit(images).transform(new)",
        plots.planes_figure({"PCA": pca.transform(flat(w.held)), "Autoencoder": bent.transform(w.held)}, w.truth),
        "Digits held out in the plane of PCA, and in the two numbers of a deep autoencoder.",
        {"squared error held out, PCA": f"{lost:.0f}", "autoencoder": f"{-bent.score(w.held):.0f}"},
    )


def walk(w: World) -> Part:
    model = fit_briefly(VAE(8, output="gaussian", **SMALL, max_iter=25, random_state=w.seed), w.seen)
    ends = [
        tuple(w.held[np.flatnonzero(w.truth == kind)[0]] for kind in pair) for pair in ((0, 6), (4, 9), (1, 7), (3, 8))
    ]
    rows = {f"walk {i}": model.interpolate(*pair, 14) for i, pair in enumerate(ends, 1)}
    bound, better = float(model.elbo(w.held).mean()), float(model.log_likelihood(w.held).mean())
    return Part(
        "A walk from digit to digit",
        "The codes of a variational autoencoder are not points but clouds, and all of them together are pressed into "
        "one Gaussian. What is gained in drawing a picture well has to be paid for by how far its cloud is from that "
        "Gaussian. So there are no gaps, and the straight line between two codes leads through pictures.",
        'VAE(8, output="gaussian").fit(images).interpolate(one, other, 14)',
        plots.rows_figure(rows, (0, 16)),
        "Four rows of pictures, each of which turns one digit held out into another.",
        {
            "log-density held out, at least": f"{bound:.2f} nats",
            "by importance sampling": f"{better:.2f} nats",
            "numbers of the code in use": f"{int(model.active_.sum())} of {len(model.active_)}",
        },
    )


def game(w: World) -> Part:
    rows, numbers = {}, {}
    for epochs in (1, 8, 30):
        model = fit_briefly(
            GAN(16, hidden_layer_sizes=(128, 128), learning_rate_init=2e-3, max_iter=epochs, random_state=w.seed),
            w.seen,
        )
        drawn = model.sample(len(w.held), random_state=w.seed)
        rows[f"{epochs} epoch{'s' if epochs > 1 else ''}"] = drawn[:ROW_PICTURES]
        found = frechet_distance(w.held, drawn)
        numbers[f"Fréchet distance, epoch {epochs}"] = f"{found.distance:.0f}"
    numbers["floor: between halves of the data"] = f"{found.floor:.0f}"
    return Part(
        "A forger and a critic",
        "One network draws, another tells drawn from real, and each learns from the other. No likelihood is ever "
        "computed: the generator only hears how it might have fooled the critic. At best the critic knows the share of "
        "real pictures at every place, and then the game measures how far two distributions are apart.",
        "GAN(16).fit(images).sample(18)",
        plots.rows_figure(rows, (0, 16)),
        "Pictures of a generator after one, eight and thirty epochs: from gray noise to digits.",
        numbers,
    )


def pixels(w: World) -> Part:
    model = fit_briefly(PixelCNN(16, n_layers=3, learning_rate_init=8e-3, max_iter=5, random_state=w.seed), w.seen)
    some = w.held[:ROW_PICTURES]
    half = some.astype(np.float64)
    half[:, 4:] = np.nan
    drawn = model.sample(200, random_state=w.seed)
    worth = sample_score(w.judge, drawn)
    return Part(
        "One pixel after the other",
        "A third way reads a picture like a line of text: each pixel has a distribution given all before it. The "
        "product is the exact likelihood of the picture, and drawing in turn makes new ones. When the upper half is "
        "given, the lower follows; where the model is not sure, it may decide otherwise than the writer did.",
        'model = PixelCNN(16).fit(images)\nmodel.sample(18), model.complete(new, "lower"), model.score(new)',
        plots.rows_figure(
            {
                "drawn": drawn[:ROW_PICTURES],
                "known": half,
                "completed": model.complete(some, "lower", random_state=w.seed),
                "truth": some,
            },
            (0, 16),
        ),
        "New digits drawn pixel by pixel, and lower halves of digits held out completed from the upper halves.",
        {
            "log-likelihood held out, exact": f"{model.score(w.held):.1f} nats",
            "each pixel for itself": f"{alone(w.seen, w.held):.1f} nats",
            "kinds among the drawn, of 10": f"{worth.diversity:.1f}",
            "how sure the network above is of them": f"{worth.quality:.0%}",
        },
    )


def alone(seen: np.ndarray, held: np.ndarray) -> float:
    """Return the log-likelihood of pictures whose pixels are independent."""
    counts = np.stack([(seen == level).sum(axis=0) + 0.5 for level in range(LEVELS)])
    logs = np.log(counts / counts.sum(axis=0))
    return float(logs[held.astype(int), np.arange(8)[:, None], np.arange(8)].sum(axis=(1, 2)).mean())
