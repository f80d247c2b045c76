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

_NETWORKS = ("Bayesian LeNet on MNIST and Cifar10-Quick on CIFAR-10 with Caffe's defaults: this project has "
             "no convolutional networks; the logistic regression on a9a is here")


@dataclass(frozen=True)
class Missing:
    """A numbered figure that is not reproduced, or a part of one.

    Parameters
    ----------
    number : str
        "paper number", as in `NUMBERED`.
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


NOT_REPRODUCED = (
    Missing("FA-HMC 5", "a network with two hidden layers on Fashion-MNIST",
            "this project has no neural networks, and the target is not log-concave, so that no theorem of "
            "the paper applies; its footnote, read as matrices of 512 by the input's dimension and 512 by "
            "the number of labels, gives some 406,000 weights, and read as widths of layers 2.4 billion",
            "another kind of simulator"),
    Missing("Stale 3", "test loss by workers", _NETWORKS, "another kind of simulator",
            part="the columns of MNIST and CIFAR-10"),
    Missing("Stale 4", "test loss by servers", _NETWORKS, "another kind of simulator",
            part="the columns of MNIST and CIFAR-10"),
    *(Missing(f"Stale {number}", f"test loss by {what}", _NETWORKS, "another kind of simulator",
              part="the panels of MNIST and CIFAR-10")
      for number, what in ((6, "workers"), (7, "servers"), (8, "servers, with one worker each"),
                           (9, "servers, with two workers each"), (10, "servers, with four workers each"),
                           (11, "servers, with six workers each"))),
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
