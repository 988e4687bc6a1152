"""The deep station: networks that tell digits apart, say them in two numbers, and draw new ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold import datasets
from twofold.core.seeds import generator
from twofold.deep import GAN, VAE, Autoencoder, CNNClassifier, PixelCNN, frechet_distance, sample_score
from twofold.linear import PCA
from twofold.plots.models import linear as plots
from twofold.tour import Part, Station, fit_briefly

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
    """Find a network that reads, codes that bend, a walk between them, a generator and a critic, pixels in turn."""
    world = train_judge(seed)
    found = {"world": world, "reading": reading(world), "codes": codes(world), "walk": walk(world)}
    return found | {"game": game(world), "pixels": pixels(world)}


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
    numbers = {"right, of digits held out": f"{np.mean(said == w.truth):.1%}", "classes it is least sure of": least}
    return Part(plots.rows_figure({"least sure": w.held[doubt]}, (0, 16)), numbers)


def codes(w: World) -> Part:
    pca = PCA(2).fit(flat(w.seen))
    bent = Autoencoder(2, hidden_layer_sizes=(128, 64), learning_rate_init=3e-3, max_iter=35, random_state=w.seed).fit(
        w.seen
    )
    again = pca.inverse_transform(pca.transform(flat(w.held)))
    lost = float(((flat(w.held) - again) ** 2).sum(axis=1).mean())
    numbers = {"squared error held out, PCA": f"{lost:.0f}", "autoencoder": f"{-bent.score(w.held):.0f}"}
    planes = {"PCA": pca.transform(flat(w.held)), "Autoencoder": bent.transform(w.held)}
    return Part(plots.planes_figure(planes, w.truth), numbers)


def walk(w: World) -> Part:
    model = fit_briefly(VAE(8, output="gaussian", **SMALL, max_iter=25, random_state=w.seed), w.seen)
    ends = [
        tuple(w.held[np.flatnonzero(w.truth == kind)[0]] for kind in pair) for pair in ((0, 6), (4, 9), (1, 7), (3, 8))
    ]
    rows = {f"walk {i}": model.interpolate(*pair, 14) for i, pair in enumerate(ends, 1)}
    bound, better = float(model.elbo(w.held).mean()), float(model.log_likelihood(w.held).mean())
    numbers = {
        "log-density held out, at least": f"{bound:.2f} nats",
        "by importance sampling": f"{better:.2f} nats",
        "numbers of the code in use": f"{int(model.active_.sum())} of {len(model.active_)}",
    }
    return Part(plots.rows_figure(rows, (0, 16)), numbers)


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
    return Part(plots.rows_figure(rows, (0, 16)), numbers)


def pixels(w: World) -> Part:
    model = fit_briefly(PixelCNN(16, n_layers=3, learning_rate_init=8e-3, max_iter=5, random_state=w.seed), w.seen)
    some = w.held[:ROW_PICTURES]
    half = some.astype(np.float64)
    half[:, 4:] = np.nan
    drawn = model.sample(200, random_state=w.seed)
    worth = sample_score(w.judge, drawn)
    lower = model.complete(some, "lower", random_state=w.seed)
    rows = {"drawn": drawn[:ROW_PICTURES], "known": half, "completed": lower, "truth": some}
    numbers = {
        "log-likelihood held out, exact": f"{model.score(w.held):.1f} nats",
        "each pixel for itself": f"{alone(w.seen, w.held):.1f} nats",
        "kinds among the drawn, of 10": f"{worth.diversity:.1f}",
        "how sure the network above is of them": f"{worth.quality:.0%}",
    }
    return Part(plots.rows_figure(rows, (0, 16)), numbers)


def alone(seen: np.ndarray, held: np.ndarray) -> float:
    """Return the log-likelihood of pictures whose pixels are independent."""
    counts = np.stack([(seen == level).sum(axis=0) + 0.5 for level in range(LEVELS)])
    logs = np.log(counts / counts.sum(axis=0))
    return float(logs[held.astype(int), np.arange(8)[:, None], np.arange(8)].sum(axis=(1, 2)).mean())
