"""What is put in the place of an argument, by name, so that a call can be written down."""

from __future__ import annotations

import decimal
import fractions
import pathlib

import numpy as np
import pandas as pd

import fedsim as fs
import theory

THREE = fs.Quadratic([[1.0], [2.0], [4.0]], [[0.0], [1.0], [3.0]], [0.2, 0.3, 0.5])
LAW = fs.Law(np.arange(3), np.zeros((3, 1)), np.ones((3, 1, 1)))

NUMBERS = {
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "1e300": 1e300, "-1e300": -1e300,
    "1e-300": 1e-300, "5e-324": 5e-324, "2**53": 2**53, "2**64": 2**64, "10**400": 10**400, "-1": -1, "0": 0,
    "-0.0": -0.0, "0.5": 0.5, "1.5": 1.5, "7": 7, "uint8(200)": np.uint8(200), "int8(-3)": np.int8(-3),
    "int8(100)": np.int8(100), "int32(2**31-1)": np.int32(2**31 - 1), "float16(0.1)": np.float16(0.1),
    "float32(0.1)": np.float32(0.1), "float32(nan)": np.float32("nan"), "bool_": np.bool_(True),
    "longdouble(1e4000)": np.longdouble("1e4000"), "Decimal": decimal.Decimal("0.5"),
    "Fraction": fractions.Fraction(1, 2), "complex": 1.0 + 1.0j, "complex128": np.complex128(1j),
    "array(0.5)": np.array(0.5), "array([0.5])": np.array([0.5])}
NO_NUMBERS = {
    "None": None, "True": True, "False": False, "'text'": "text", "''": "", "'corrected'": "corrected",
    "bytes": b"text", "Ellipsis": ..., "object": object(), "lambda": lambda *args, **options: 1.0, "{}": {},
    "{'a': 1}": {"a": 1}, "{1.0}": {1.0}, "slice": slice(None), "int": int, "numpy": np,
    "datetime64": np.datetime64("2020-01-01"), "NA": pd.NA, "NaT": pd.NaT,
    "Path": pathlib.Path("nowhere/a.npz"), "'nul'": "a\0b"}
ARRAYS = {
    "masked": np.ma.array([1.0, 999.0], mask=[False, True]), "np.ma.masked": np.ma.masked,
    "masked column": np.ma.array([[1.0], [999.0]], mask=[[False], [True]]),
    "list of masked": [np.ma.array([1.0, 999.0], mask=[False, True])] * 2,
    "masked integers": np.ma.array([0, 1], mask=[False, True]),
    "Series": pd.Series([0.5, 0.5]), "DataFrame": pd.DataFrame([[0.5, 0.5]]),
    "Series with NA": pd.Series([1, None], dtype="Int64"), "ragged": [[1.0], [1.0, 2.0]], "[]": [],
    "empty": np.empty((0, 2)), "objects": np.array([1.0, None], dtype=object), "['a']": ["a", "b"],
    "[nan]": [float("nan")], "[inf, 1]": [float("inf"), 1.0], "[-1]": [-1], "[-1.0, 1.0]": [-1.0, 1.0],
    "[1e300]": [1e300, 1e300], "[1e-300]": [1e-300, 1e-300], "[0.5, 0.5]": [0.5, 0.5], "[[0.5]]": [[0.5]],
    "[True]": [True, False], "[1j]": [1j, 0.0], "cube": np.ones((2, 2, 2)), "records": np.zeros(2, "f8,i4"),
    "asymmetric": [[0.5, 0.9], [0.1, 0.5]], "uint8s": np.array([200, 100], np.uint8), "(0, 1)": (0, 1),
    "[None]": [None], "float16s": np.array([0.5, 0.5], np.float16)}
INSTANCES = {
    "Quadratic": THREE, "class Quadratic": fs.Quadratic, "FALD": fs.FALD(0.1, 2), "class FALD": fs.FALD,
    "FAHMC": fs.FAHMC(0.01, 2), "DESGLD": fs.DESGLD(0.01, fs.network.ring(3)),
    "DESGHMC": fs.DESGHMC(0.1, 9.0, fs.network.ring(3)), "StaleSGLD": fs.StaleSGLD(0.01, 2),
    "listed FALD": fs.FALD([0.1, 0.05], 2),
    "drawn FALD": fs.FALD(0.1, 2, participation=fs.Participation(2, True)),
    "GaussianMean": fs.GaussianMean([0.0, 1.0, 2.0]), "Gaussian": fs.Gaussian(np.zeros(3), np.eye(3)),
    "Law": LAW, "Participation": fs.Participation(7, True), "Workers": fs.Workers(2),
    "Harmonic": fs.schedules.Harmonic(10.0, 1.0), "Constants": theory.constants(THREE, fs.FALD(0.1)),
    "bare Constants": theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0),
    "fs": fs, "ring": fs.network.ring(3)}
MADE = {  # anew for each call: they are used up, or large
    "generator": lambda: (k for k in range(3)), "range(10**9)": lambda: range(10**9),
    "range(3)": lambda: range(3), "iter": lambda: iter([0.5, 0.5])}

def like(value: object) -> dict[str, object]:
    """Garbage of the kind of a valid argument."""
    if value is None or isinstance(value, (str, bool)):
        return ALL
    if isinstance(value, (int, float)):
        return NUMBERS
    return ARRAYS if isinstance(value, (list, tuple, np.ndarray)) else INSTANCES


ALL = {name: (lambda value=value: value) for part in (NUMBERS, NO_NUMBERS, ARRAYS, INSTANCES)
       for name, value in part.items()} | MADE
