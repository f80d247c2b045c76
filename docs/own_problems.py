"""The picture of docs/own_problems.md: three problems of one's own, run and compared with what is known.

    python docs/own_problems.py           runs the page's code and draws own_problems.svg

The code stands in the page alone; here it is read from there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().with_name("own_problems.md")


def blocks() -> list[str]:
    """The page's Python code, in order."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)


def run_page() -> dict[str, Any]:
    """All names that the page's code makes."""
    names: dict[str, Any] = {"__name__": "own_problems_page"}
    for number, block in enumerate(blocks()):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    return names


def draw(names: dict[str, Any], path: Path) -> None:
    """Histograms of the runs, and what they are compared with."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    plt.rcParams.update({"font.size": 10, "svg.hashsalt": "fedsim"})
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for panel, name, title in ((panels[0], "student", "Student-t clients"),
                               (panels[1], "wells", "Double well")):
        law, run = names[f"{name}_law"], names[f"{name}_run"]
        low, high = law.quantile([1e-4, 1.0 - 1e-4])
        x = np.linspace(low, high, 400)
        panel.hist(run.final[:, 0], bins=80, range=(low, high), density=True, color="0.8",
                   label=f"FA-LD, {run.n_replicas:,} replicas")
        panel.plot(x, law.pdf(x), color="C0", label="target by quadrature")
        panel.set(title=title, xlabel="x", ylabel="density")
    panel, bins = panels[2], np.linspace(-2.5, 4.0, 60)
    panel.hist(names["school_run"].final[:, 1], bins=bins, density=True, color="0.8",
               label="FA-LD, 5 local steps")
    panel.hist(names["reference_run"].final[:, 1], bins=bins, density=True, histtype="step", color="C0",
               linewidth=1.5, label="reference: one local step,\na fifth of the step size")
    panel.set(title="Eight schools", xlabel="log of the spread between schools", ylabel="density")
    for panel in panels:
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.1), frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(run_page(), PAGE.with_suffix(".svg"))
