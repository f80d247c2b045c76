"""The Adult data (UCI) as the 123 binary features of LIBSVM's a9a, rebuilt from the raw rows.

Fourteen questions give a group of columns each: a column a category, in the order of UCI's description, or a
column a range of a number. A row has a 1 in the column of its answer, and none where the answer is missing.

LIBSVM does not publish its program. The ranges below are those with which 30 of 30 known rows of a9a come
out, and a file of a9a's size; whether 46 and 47 hours belong to the fourth or the fifth range is not known.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..settings.validation import shown, whole
from .libsvm import Labelled, text_of

N_TRAIN, N_TEST, N_FEATURES = 32_561, 16_281, 123
LABEL, LABELS = "income-per-year", {"<=50K": 0.0, ">50K": 1.0}
MISSING, HOURS = "?", "hours-per-week"
LONG_HOURS = 48
"""The least number of hours in the last range; 46 and 47 are as likely."""
RANGES = {"age": (26, 33, 41, 50), "fnlwgt": (106_648, 158_662, 196_338, 259_873),
          "education-num": (9, 10, 11, 13), "capital-gain": (1,), "capital-loss": (1,)}
"""The least values of the second range, the third, ...; of fnlwgt quintiles of the training rows."""
CATEGORIES = {
    "workclass":
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
        "Never-worked",
    "education":
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th "
        "Masters 1st-4th 10th Doctorate 5th-6th Preschool",
    "marital-status":
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse",
    "occupation":
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
        "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
        "Priv-house-serv Protective-serv Armed-Forces",
    "relationship":
        "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race":
        "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex":
        "Female Male",
    "native-country":
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) "
        "India Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica "
        "Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti "
        "Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
        "Trinadad&Tobago Peru Hong Holand-Netherlands",
}
QUESTIONS = ("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
             "relationship", "race", "sex", "capital-gain", "capital-loss", HOURS, "native-country")
_NONE, _WRONG = -1, -2
_FORM = f"of {len(QUESTIONS)} answers and an income, separated by commas, after a header"


def _number(answer: str) -> float:
    return float(answer) if answer.removeprefix("-").isdecimal() else np.nan


def _columns(question: str, answers: Iterable[str], long_hours: int) -> tuple[np.ndarray, int]:
    """Column (n,) of each answer within its question, and how many there are.

    `_NONE` where the answer is missing, `_WRONG` where it is unknown.
    """
    if question in CATEGORIES:
        names = CATEGORIES[question].split()
        places = {name: place for place, name in enumerate(names)} | {MISSING: _NONE}
        return np.array([places.get(answer, _WRONG) for answer in answers]), len(names)
    limits = (35, 40, 41, long_hours) if question == HOURS else RANGES[question]
    values = np.array([np.inf if answer == MISSING else _number(answer) for answer in answers])
    columns = np.searchsorted(limits, values, side="right")
    return np.where(np.isposinf(values), _NONE, np.where(np.isnan(values), _WRONG, columns)), 1 + len(limits)


def read_adult(path: str | os.PathLike[str], *, long_hours: int = LONG_HOURS) -> Labelled:
    """Read raw rows of the Adult data, and make a9a's features of them.

    Parameters
    ----------
    path : path of a text file with a header, or of gzip, xz or bzip2 data of it
    long_hours : int
        The least hours a week in the last of their ranges: 46, 47 or 48, which is not known of a9a.

    Returns
    -------
    Labelled
        Features (n, 123), 0 or 1; labels (n,), 1 where the income is above 50,000.

    Raises
    ------
    ValueError
        Naming file, line and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.adult import read_adult
    >>> header = ("age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,"
    ...           "sex,capital-gain,capital-loss,hours-per-week,native-country,income-per-year")
    >>> row = ("39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,"
    ...        "40,United-States,<=50K")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "adult.csv")
    ...     _ = file.write_text(header + "\\n" + row + "\\n")
    ...     data = read_adult(file)
    >>> (1 + data.features[0].nonzero()[0]).tolist(), data.labels.tolist()
    ([3, 11, 14, 19, 39, 42, 55, 64, 67, 73, 75, 76, 80, 83], [0.0])
    """
    if not 46 <= whole("long_hours", long_hours, 1) <= 48:
        raise ValueError(f"long_hours={long_hours} must be 46, 47 or 48")
    lines, name = csv.reader(text_of(path, _FORM).splitlines()), Path(path).name
    header, *rows = [[cell.strip() for cell in row] for row in lines] or [[]]
    if header != [*QUESTIONS, LABEL]:
        raise ValueError(f"{name}, line 1: {shown(','.join(header))}; expected "
                         f"{','.join((*QUESTIONS, LABEL))!r}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or row[-1] not in LABELS:
            raise ValueError(f"{name}, line {number}: {shown(','.join(row))}; expected {len(QUESTIONS)} "
                             f"answers and an income, {' or '.join(LABELS)}")
    if not rows:
        raise ValueError(f"{name} has no row below its header; expected rows {_FORM}")
    features, first = np.zeros((len(rows), N_FEATURES)), 0
    for question, answers in zip(QUESTIONS, zip(*(row[:-1] for row in rows), strict=True), strict=True):
        columns, width = _columns(question, answers, long_hours)
        for place in np.flatnonzero(columns == _WRONG):
            expected = "a category of UCI's" if question in CATEGORIES else "a whole number"
            raise ValueError(f"{name}, line {place + 2}: {question} is {shown(answers[place])}; expected "
                             f"{expected} or {MISSING}")
        answered = np.flatnonzero(columns >= 0)
        features[answered, first + columns[answered]] = 1.0
        first += width
    return Labelled(features, np.array([LABELS[row[-1]] for row in rows]))
