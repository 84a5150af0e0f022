"""Anchors against random samples of equal size: the error on families of models that were held out, and the work saved.

Three populations: the demo's models (a store, or trained now), classifiers of scikit-learn of eight families on the
digits, and drawn ones of many families on 10,000 samples. Images are those that a new model must decode and run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from testbed.extensions.estimates.methods.held_out import BY_CHANCE, hold_out

SIZES = (10, 30, 100, 300)
TRAINED_ON = 200  # digits
Population = tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]


def drawn(samples: int, families: int = 12, each: int = 6, seed: int = 0) -> Population:
    """Models that follow item responses, and relatives that err on the same samples besides."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(families), each)
    ability = rng.normal(0, 1, families)[family] + rng.normal(0, 0.3, len(family))
    a, easiness = np.abs(rng.normal(1, 0.4, samples)), rng.normal(1.5, 2, samples)
    shared = rng.normal(0, 0.6, (samples, families))[:, family] + rng.normal(0, 0.4, (samples, len(family)))
    right = rng.random((samples, len(family))) < expit(np.multiply.outer(a, ability) + easiness[:, None] + shared)
    return f"drawn: {families} families", right.astype(float), family


def classifiers() -> dict[str, list[Any]]:
    """Classifiers by family."""
    return {
        "linear": [LogisticRegression(C=c, max_iter=300) for c in (0.001, 0.01, 1)]
        + [RidgeClassifier(alpha=alpha) for alpha in (1, 1000)]
        + [LinearSVC(C=0.001)],
        "discriminant": [LinearDiscriminantAnalysis("lsqr", shrinkage=share) for share in (0.01, 0.3, 0.9)],
        "neighbours": [KNeighborsClassifier(k) for k in (1, 3, 9, 25)] + [NearestCentroid()],
        "kernel": [SVC(C=c, gamma=gamma) for c in (0.3, 3) for gamma in (0.0003, 0.002)],
        "tree": [DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (4, 7, None)],
        "forest": [RandomForestClassifier(n, random_state=0) for n in (5, 20, 80)]
        + [ExtraTreesClassifier(n, random_state=0) for n in (5, 40)],
        "bayes": [GaussianNB(var_smoothing=share) for share in (1e-3, 1e-1)]
        + [MultinomialNB(), BernoulliNB(binarize=8)],
        "network": [MLPClassifier(size, max_iter=150, random_state=0) for size in ((8,), (32,), (128,), (32, 32))],
    }


def digits() -> Population:
    """Classifiers of the digits, each trained on 200 of them."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:TRAINED_ON], order[TRAINED_ON:]
    right, family = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, several in enumerate(classifiers().values()):
            for model in several:
                right.append(model.fit(x[train], y[train]).predict(x[test]) == y[test])
                family.append(number)
    return f"digits: {len(right)} classifiers, {number + 1} families", np.array(right, dtype=float).T, np.array(family)


def stored(db_url: str, setting: str) -> Population:
    """The models of a store, by the families that they declare."""
    from testbed.db.store import Store
    from testbed.extensions.estimates.choosing import families_of
    from testbed.stored_results.side_by_side import SampleTable, choose, side_by_side

    with Store.open(db_url) as store:
        table = side_by_side(
            store, SampleTable(store), setting, choose(store, [setting], score="top1")[setting], "top1"
        )
        names, _ = families_of(store, table, {})
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    what = f"{setting}: {len(names)} models, {len(numbers)} families"
    return what, table.scores, np.array([numbers[name] for name in names])


def populations(db_url: str | None, settings: tuple[str, ...], samples: int) -> Iterator[Population]:
    """All of them."""
    for setting in settings if db_url else ():
        yield stored(str(db_url), setting)
    yield digits()
    yield drawn(samples)


@click.command()
@click.option("--db-url", help="A store with the demo (testbed run demo --on demo).")
@click.option("--on", "settings", multiple=True, default=["digits", "digits-rotated"], show_default=True)
@click.option("--samples", default=10_000, show_default=True, help="Of the drawn population.")
@click.option("--draws", default=5, show_default=True)
def main(db_url: str | None, settings: tuple[str, ...], samples: int, draws: int) -> None:
    """Prints a line for each population and size."""
    for what, right, family in populations(db_url, settings, samples):
        n = len(right)
        click.echo(f"\n{what}, {n:,} samples, accuracies {right.mean(0).min():.2f} to {right.mean(0).max():.2f}")
        for size in SIZES:
            if size >= n:
                continue
            start = time.process_time()
            held = hold_out(right, 1.0, None, family, size, draws=draws)
            ways = list(held.estimates)
            best, by_chance = held.best_errors(ways), held.errors(BY_CHANCE)
            top = family == family[np.argmax(right.mean(axis=0))]
            above = [
                100 * np.abs(held.estimates[way] - held.true)[:, top].mean()
                for way in (held.best(ways, ~top), BY_CHANCE)
            ]
            # a mean of n' of n samples is off by √((1/n' − 1/n)) times as much: as many random samples are as good
            scale = (by_chance.mean_absolute / best.mean_absolute) ** 2
            equal = 1 / ((1 / size - 1 / n) / scale + 1 / n)
            click.echo(
                f"{size:5} anchors  {100 * best.mean_absolute:5.2f} points ({_ranks(best)})  random"
                f" {100 * by_chance.mean_absolute:5.2f} ({_ranks(by_chance)})  as good as {equal:6.0f} random samples;"
                f" images {size} of {n:,}; {time.process_time() - start:.0f} s; {', '.join(held.best(ways))};"
                f" on the family of the best model {above[0]:.2f}, random {above[1]:.2f}"
            )


def _ranks(errors: Any) -> str:
    return "–" if errors.rank_correlation is None else f"{errors.rank_correlation:.2f}"


if __name__ == "__main__":
    main()
