"""Every numbered figure of the four papers: which figure of this package draws it, or why none does.

A figure says what it draws in its `REPRODUCES`; what is not drawn, wholly or in part, is a row of
`NOT_REPRODUCED`. A test holds the two together against `NUMBERED`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .discovery import figures

NUMBERED: dict[str, tuple[str, ...]] = {
    "FA-LD": ("1(a)", "1(b)", "1(c)", "1(d)", "1(e)", "2", "3(a)", "3(b)", "3(c)", "3(d)", "3(e)", "4"),
    "FA-HMC": ("1(a)", "1(b)", "1(c)", "1(d)", "2", "3", "4", "5", "6", "7", "S1", "S2"),
    "DE": ("1", "2", "3", "4(a)", "4(b)", "4(c)", "5", "6", "7", "8", "9", "10"),
    "Stale": ("1", "2(a)", "2(b)", "2(c)", "3", "4", "5", "6", "7", "8", "9", "10", "11"),
}
"""Numbers of the figures by paper; S marks FA-HMC's supplement, which counts from 1 again."""

@dataclass(frozen=True)
class Missing:
    """Numbered figures that are not reproduced for one reason, or parts of them.

    Parameters
    ----------
    number : str
        "paper number, number", with numbers as in `NUMBERED`.
    shows : str
        What the paper draws there.
    why : str
        Why it is not here.
    needs : str
        What it would take.
    part : str
        Which part, where the rest is here; blank for the whole figure.
    """

    number: str
    shows: str
    why: str
    needs: str
    part: str = ""

    @property
    def numbers(self) -> list[str]:
        """Each as "paper number"."""
        paper, _, numbers = self.number.partition(" ")
        return [f"{paper} {one}" for one in numbers.split(", ")]


_ACCELERATORS = "a simulator that runs on accelerators"

NOT_REPRODUCED = (
    Missing("FA-HMC 5", "a network with two hidden layers on Fashion-MNIST",
            "it is more than two cores can do, though fs.Custom compiles any gradient: the footnote, read as "
            "matrices of 512 by the input's dimension and 512 by the number of labels, gives some 406,000 "
            "weights, and read as widths of layers 2.4 billion; the target is not log-concave, so that no "
            "theorem of the paper applies", _ACCELERATORS),
    Missing("Stale 3, 4, 6, 7, 8, 9, 10, 11",
            "test loss by workers (3, 6) and by servers (4, 7; 8 to 11 with one, two, four and six workers)",
            "Bayesian LeNet on MNIST and Cifar10-Quick on CIFAR-10 with Caffe's defaults, of some 431,000 "
            "and 146,000 weights, are more than two cores can do; the logistic regression on a9a is here, "
            "and beside figure 3, at the paper scale alone, a small network of ours on digits",
            _ACCELERATORS, part="the columns and panels of MNIST and CIFAR-10"),
)


def drawn_by() -> dict[str, list[str]]:
    """Ids of the figures that draw each numbered figure."""
    drawn: dict[str, list[str]] = {f"{paper} {number}": [] for paper, numbers in NUMBERED.items()
                                   for number in numbers}
    for figure in figures().values():
        for number in figure.reproduces:
            if number not in drawn:
                raise ValueError(f"REPRODUCES of figure {figure.id} names {number!r}; "
                                 "reproduce/coverage.py has no such figure")
            drawn[number].append(figure.id)
    return drawn
