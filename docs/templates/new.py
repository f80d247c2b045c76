"""Begin an algorithm, a problem, a bound or a figure from its template, in this checkout.

    python docs/templates/new.py algorithm fa_uld FAULD       a federated algorithm, its law, twin and cases
    python docs/templates/new.py problem funnel Funnel      fedsim/problems/funnel.py
    python docs/templates/new.py bound dalalyan2019           theory/dalalyan2019.py
    python docs/templates/new.py figure fa_ld fig5            reproduce/fa_ld/fig5.py

No file is overwritten. What is left to be done by hand is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ALGORITHM = {"algorithm.py": "fedsim/algorithms/{0}.py", "exact_law.py": "theory/exact/federated/{0}.py",
             "twin.py": "tests/naive_{0}.py", "cases.py": "tests/cases/{0}.py"}
BY_HAND = {
    "algorithm": """in fedsim/__init__.py   from .algorithms.{0} import {1}      and "{1}" in __all__
in tests/algorithms.py  import naive_{0}
                        from cases.{0} import LAWS, {2}
                        in ROWS: fs.{1}: Row(naive_{0}.{0}, LAWS, 8, 40_000, 11, (1, 2, 4), {2}),
then  python -m pytest tests -k {1}""",
    "problem": """in fedsim/__init__.py   from .problems.{0} import {1}      and "{1}" in __all__
then  python -m pytest tests/test_layout.py tests/test_examples.py -k {0}
      and a test that its bits are those of fs.Custom with the same gradient, as in tests/test_custom.py""",
    "bound": """fill in name and key of the paper: no test asks for them
then  python -m pytest tests/test_layout.py tests/test_examples.py -k {0}
      python -m reproduce worst_cases --only {0}  seconds; the scoreboard reads what it writes
      python -m reproduce scoreboard              minutes; writes scoreboard.csv, index.html
      python -m pytest tests/test_scoreboard.py tests/test_worst_cases.py tests/test_worst_case_classes.py \\
          tests/test_every_bound.py               compared on 60 problems and in every class, some within""",
    "figure": """in tests/opposites/{0}.py   tables that turn each verdict
then  python -m reproduce {0}_{1} --scale tiny, and without --scale, into figures/
      python -m reproduce costs {0}_{1}
      python -m pytest tests/test_judges.py tests/test_figures.py
A figure of no paper goes to the folder of its algorithm, or to bounds; its PAPER begins with "ours, for".""",
}


def copies(kind: str, words: list[str]) -> dict[Path, str]:
    """The files of a new thing and what stands in them."""
    if kind == "algorithm":
        name, cls = words
        named = (("FANew", cls), ("fa_new", name), ("FA_NEW", name.upper()),
                 ("FA-NEW", name.upper().replace("_", "-")))
        places = {HERE / "algorithm" / file: ROOT / place.format(name) for file, place in ALGORITHM.items()}
    elif kind == "problem":
        name, cls = words
        named = (("NewProblem", cls), ("new_problem", name))
        places = {HERE / "problem.py": ROOT / "fedsim" / "problems" / f"{name}.py"}
    elif kind == "bound":
        named = (("new_paper", words[0]),)
        places = {HERE / "bound.py": ROOT / "theory" / f"{words[0]}.py"}
    else:
        named = (("new_figure", words[1]), ("<paper>", words[0]))
        places = {HERE / "figure.py": ROOT / "reproduce" / words[0] / f"{words[1]}.py"}
    files = {}
    for template, place in places.items():
        text = template.read_text(encoding="utf-8")
        for old, new in named:
            text = text.replace(old, new)
        files[place] = text
    return files


def main(kind: str = "", *words: str) -> int:
    """Write the files; returns the exit code."""
    if len(words) != {"algorithm": 2, "problem": 2, "bound": 1, "figure": 2}.get(kind) or not all(
            word.isidentifier() for word in words):
        print(__doc__)
        return 2
    files = copies(kind, list(words))
    taken = [place for place in files if place.exists() or not place.parent.exists()]
    if taken:
        print(f"error: {taken[0].relative_to(ROOT)} exists already, or its folder does not")
        return 2
    for place, text in files.items():
        place.write_text(text, encoding="utf-8")
        print(f"written: {place.relative_to(ROOT)}")
    print(BY_HAND[kind].format(*words, words[0].upper()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
