"""Rows dealt to clients: each to exactly one, evenly, by label, or in shares of chance; others to none."""

import re

import numpy as np
import pytest
from alarm import P_LIMIT
from scipy import stats

from reproduce.images import digits
from reproduce.splits import MOST_DRAWS, by_label, dirichlet, division, iid

N_CLIENTS = 10


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(name="labels", scope="module")
def _labels():
    return digits().labels


def kinds(clients, labels):
    """How many labels each client has."""
    return [len(set(labels[clients == c])) for c in range(N_CLIENTS)]


def everyone_deals(labels):
    return {"iid": iid(len(labels), N_CLIENTS, rng()), "by label": by_label(labels, N_CLIENTS),
            "dirichlet": dirichlet(labels, N_CLIENTS, 0.5, rng(), 20)}


def test_every_row_has_one_client_and_every_client_rows(labels):
    for clients in everyone_deals(labels).values():
        assert clients.shape == labels.shape and clients.dtype == np.int64
        assert set(clients) == set(range(N_CLIENTS))


@pytest.mark.parametrize(("n", "n_clients"), [(1797, 10), (10, 10), (7, 3), (5, 1), (100, 7)])
def test_even_parts_are_equal_within_one_row(n, n_clients):
    for clients in (iid(n, n_clients, rng()), by_label(np.arange(n) % 4, n_clients)):
        counts = np.bincount(clients, minlength=n_clients)
        assert counts.sum() == n and counts.max() - counts.min() <= 1


def test_even_parts_are_random(labels):
    clients = iid(len(labels), N_CLIENTS, rng())
    assert kinds(clients, labels) == N_CLIENTS * [10]
    assert (clients != iid(len(labels), N_CLIENTS, rng(1))).any()
    np.testing.assert_array_equal(clients, iid(len(labels), N_CLIENTS, rng()))
    assert (np.diff(clients) < 0).sum() > 100  # not contiguous parts of the file, whose order is by writer


def test_clients_by_label_have_few_labels(labels):
    clients = by_label(labels, N_CLIENTS)
    assert max(kinds(clients, labels)) <= 3
    assert (np.diff(clients[np.argsort(labels, kind="stable")]) >= 0).all()
    assert sum(kinds(clients, labels)) < 30
    assert max(kinds(iid(len(labels), N_CLIENTS, rng()), labels)) > 3  # the same count sees random parts


def test_dirichlet_parts_are_nearly_even_for_large_alpha_and_few_labels_for_small(labels):
    even = dirichlet(labels, N_CLIENTS, 1e6, rng())
    for label in range(10):
        counts = np.bincount(even[labels == label], minlength=N_CLIENTS)
        assert counts.max() - counts.min() <= 2  # cuts at rounded multiples of n/10, moved by 0.001 n
    uneven = dirichlet(labels, N_CLIENTS, 0.1, rng())
    sizes = [np.bincount(uneven[labels == label], minlength=N_CLIENTS).max() for label in range(10)]
    assert np.mean(sizes) > 60 and np.mean(kinds(uneven, labels)) < 7
    order = even[np.flatnonzero(labels == 3)]
    assert (np.diff(order) < 0).any()  # rows of a label are shuffled before they are cut


def test_shares_of_a_label_are_those_of_the_dirichlet_law(alarm):
    """A client's share has the law Beta(alpha, (N-1) alpha); cuts are rounded by 1e-4 at most."""
    n_clients, n_labels, n = 4, 200, 5000
    labels = np.repeat(np.arange(n_labels), n)

    def shares(alpha):
        clients = dirichlet(labels, n_clients, alpha, rng(5)).reshape(n_labels, n)
        return [(clients == c).mean(axis=1) for c in range(n_clients)]

    law = stats.beta(2.0, 3 * 2.0)
    alarm.assert_pvalue([stats.kstest(one, law.cdf).pvalue for one in shares(2.0)], "shares")
    assert all(stats.kstest(one, law.cdf).pvalue < 1e-4 * P_LIMIT for one in shares(20.0))


def test_dirichlet_gives_everyone_the_least(labels):
    for seed in range(5):
        counts = np.bincount(dirichlet(labels, N_CLIENTS, 0.3, rng(seed), 60), minlength=N_CLIENTS)
        assert counts.min() >= 60 and counts.sum() == len(labels)
    assert min(np.bincount(dirichlet(labels, N_CLIENTS, 0.3, rng(seed)), minlength=10).min()
               for seed in range(5)) < 60  # or nothing was drawn again
    words = re.escape(f"alpha=0.001 gave no division in {MOST_DRAWS} draws in which each of n_clients=10 has "
                      "least=100 rows")
    with pytest.raises(ValueError, match=words):
        dirichlet(labels[:1100] % 2, 10, 1e-3, rng(), 100)


def test_validation_and_test_rows_are_of_no_client(labels):
    for seed in range(3):
        parts = division(len(labels), seed, test_share=0.25, validation_share=0.15)
        assert [len(part) for part in parts] == [1146, 202, 449]  # 15% of the 1,348 rows left by the test
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
        clients = iid(len(parts.train), N_CLIENTS, rng(seed))
        held = set(parts.train[np.flatnonzero(clients >= 0)])
        assert len(held) == 1146 and not held & {*parts.validation, *parts.test}
    again = division(len(labels), 2, test_share=0.25, validation_share=0.15)
    assert all((one == other).all() for one, other in zip(parts, again, strict=True))
    other = division(len(labels), 3, test_share=0.25, validation_share=0.15)
    assert (np.sort(parts.test) != np.sort(other.test)).any()
    assert len(division(50, 0, test_share=0.0, validation_share=0.0).train) == 50


@pytest.mark.parametrize(("call", "words"), [
    (lambda: iid(0, 1, rng()), "n=0 must be at least 1"),
    (lambda: iid(3, 4, rng()), "n_clients=4 must be at most 3"),
    (lambda: iid(3, 0, rng()), "n_clients=0"), (lambda: iid(3, 1, 7), "rng=7 must be"),
    (lambda: by_label([], 1), "labels=[] must"), (lambda: by_label([0.5, 1.5], 1), "labels="),
    (lambda: by_label([0, 1], 3), "n_clients=3 must be at most 2"),
    (lambda: dirichlet([0, 1], 2, 0.0, rng()), "alpha=0.0 must be greater than 0"),
    (lambda: dirichlet([0, 1], 2, 1e16, rng()), "alpha=1e+16 must be at most 1e+15"),
    (lambda: dirichlet([0, 1], 2, 1.0, None), "rng=None"),
    (lambda: dirichlet([0, 1], 2, 1.0, rng(), 2), "least=2 rows for each of n_clients=2 must be at most 2"),
    (lambda: dirichlet([0, 1], 2, 1.0, rng(), 0), "least=0"),
    (lambda: division(0, 0, test_share=0.1, validation_share=0.1), "n=0"),
    (lambda: division(9, -1, test_share=0.1, validation_share=0.1), "seed=-1"),
    (lambda: division(9, 0, test_share=1.0, validation_share=0.1), "test_share=1.0 must be at least 0"),
    (lambda: division(9, 0, test_share=0.1, validation_share=-0.1), "validation_share=-0.1"),
    (lambda: division(1, 0, test_share=0.6, validation_share=0.1), "must leave at least one of n=1 rows"),
])
def test_bad_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


def test_equal_shares_are_rounded_to_the_nearest_row():
    """Ends at 33.3 and 66.7 of 100 rows."""
    for seed in range(3):
        clients = dirichlet(np.zeros(100, int), 3, 1e12, np.random.default_rng(seed))
        assert np.bincount(clients).tolist() == [33, 34, 33]


def test_as_many_rows_as_are_asked_for_are_enough():
    assert np.bincount(dirichlet(np.zeros(4, int), 2, 1e12, rng(), 2)).tolist() == [2, 2]


def test_all_is_drawn_again_as_often_as_is_said():
    class Counted(np.random.Generator):
        """One that gives everything to the first client."""

        draws = 0

        def dirichlet(self, alpha):
            self.draws += 1
            return np.eye(len(alpha))[0]

    one = Counted(np.random.PCG64(0))
    with pytest.raises(ValueError, match=f"no division in {MOST_DRAWS} draws"):
        dirichlet([0, 1, 0, 1], 2, 1.0, one)
    assert one.draws == 2 * MOST_DRAWS  # each time a share for every label
