"""The operations of the machine, and a program for it: plain arrays, whatever the sampler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..settings.validation import Array

(FILL, SCALE, PAIR, ADD, ADD_PAIR, GRAD, MIX, MEAN, RANDOM, NOISE, SHARED_NOISE, KICK, SHARED_KICK,
 DAMPED_KICK, STEP, EACH, POTENTIAL, TURN, TURN_BACK, MODES_GRAD, LEAP) = range(21)
"""Row operations. With normals n of the client and s of all: out = k; k a; k a + l b; out += k a;
out += k a + l b; gradient at a; a mixed; a averaged; either at random; out += k n; out += k s;
out += l n - k a; out += l n + m s - k a; out = m out + l n - k a; out += l n + m s - k gradient at out;
a function of a, b and c; in every row k times the potential at a. Along the eigenvectors Q of the client's
curvature: Q'a; Q a; gradient at a; and, so many times, b += k gradient at a, a += l b, from which out = a,
c = b; after the first time m for k."""
CLIENTS, LOOP, END, EXCHANGE, DRAW = range(5)
"""Steps: operations for some clients; begin and end of a loop; two registers change places; who is drawn."""
REPLACED, UNREPLACED, ANSWERS, UNBIASED, MATRICES = range(5)
"""Draws at random: clients in three ways, answers weighed in two ways, one of several matrices."""


class Program(NamedTuple):
    """Plain arrays.

    Attributes
    ----------
    code : (n, 10) int
        Operation, registers out, a and b, coefficients k, l and m, matrix, draw, function or times, number
        of the gradient, and register c.
    steps : (n, 6) int
        Kind; of CLIENTS: first and last operation, for all at once, own noise, shared noise; of LOOP: turns;
        of END: where to; of EXCHANGE: two registers; of DRAW: its number.
    coefficients : (k, 4) int
        First number in `numbers`, rounds, and strides of rounds and clients.
    numbers : (n,)
    matrices : (m, 3) int
        Of matrices that take turns: their first row in `first`, clients and turns.
    first, columns, entries
        Sparse rows.
    draws : (k, 4) int
        Kind, clients drawn, first number of cumulative weights, probabilities or chances, first matrix.
    widths : (registers,) int
        1 where a register has a slot for each client.
    uniforms : (functions,) int
        Uniform numbers that each function is given.
    marks : (5 + n,) int
        Own noises and shared noises of a round, whether gradients are numbered by own noises, whether
        clients differ, calls with uniform numbers in a round, and the registers that begin at the start.
    """

    code: np.ndarray
    steps: np.ndarray
    coefficients: np.ndarray
    numbers: Array
    matrices: np.ndarray
    first: np.ndarray
    columns: np.ndarray
    entries: Array
    draws: np.ndarray
    widths: np.ndarray
    uniforms: np.ndarray
    marks: np.ndarray
