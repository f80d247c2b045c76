"""A bound under the microscope: what FA-LD's theorem says, where it comes from, and what is true."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="A bound under the microscope")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, DOTTED, PURPLE, SOLID, chart, line, rule, together

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS, GREY


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # A bound under the microscope

    ## To read aloud

    A theorem about an algorithm is a promise: whatever your problem is, if its constants are such and such,
    then after so many rounds you are at most that far from the posterior. It is made for all problems at
    once, and so it cannot know how lucky you are with yours. That is its strength. It is also why the
    promise may be a thousand times as large as the truth, and no less true.

    For some problems we know the truth. If every client's potential is a parabola, the law after each
    round can be computed. So we can put both on the same axes: the promise, and what it is a promise of.
    There is a third curve. It uses the same argument as the paper, but follows it step by step with a
    computer, where the paper closes it in one line that a reader can understand.

    Three questions should be asked of every bound. First: do its hypotheses hold here? If not, it promises
    nothing, and nothing can contradict it. Second: is it smaller than the distance from which we started? If
    not, it is called vacuous: we knew more before we began. Third: which of its terms is large, the one that
    forgets the start, or the one that stays?

    A large bound is not a wrong bound, and one example does not show how good it is in the worst case. For
    that one has to search for the problem that comes closest to it, which we do at the end.

    Guess before you move the sliders. Which step size makes the bound say something? When the step shrinks
    to a quarter, does the bound shrink as fast as the truth?
    """)
    return


@app.cell
def _():
    step_size = mo.ui.slider(
        steps=[1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1], value=0.003, show_value=True,
        label="step size",
    )
    local_steps = mo.ui.slider(1, 10, value=5, show_value=True, label="local steps K")
    curvature = mo.ui.slider(2.0, 10.0, 1.0, value=4.0, show_value=True, label="condition number")
    distance = mo.ui.slider(0.0, 10.0, 1.0, value=4.0, show_value=True, label="distance of the optima")
    n_rounds = mo.ui.slider(steps=[30, 100, 200, 300], value=200, show_value=True, label="rounds")
    mo.hstack([mo.vstack([step_size, local_steps, n_rounds]), mo.vstack([curvature, distance])], wrap=True)
    return curvature, distance, local_steps, n_rounds, step_size


@app.cell
def _(curvature, distance):
    problem = fs.Quadratic(
        hessians=[[1.0, curvature.value], [curvature.value, 1.0]],
        minimizers=[[-distance.value / 2, 1.0], [distance.value / 2, 1.0]],
    )
    return (problem,)


@app.cell
def _(local_steps, n_rounds, problem, step_size):
    algorithm = fs.FALD(step_size.value, local_steps.value)
    constants = theory.constants(problem, algorithm)
    law = theory.exact_law(problem, algorithm, n_rounds.value)
    bound = theory.fa_ld.w2_bound(constants, algorithm, n_rounds=n_rounds.value)
    recursion = theory.fa_ld.w2_recursion(constants, algorithm, n_rounds=n_rounds.value)
    verdict = theory.check(bound, law)
    return algorithm, bound, constants, law, recursion, verdict


@app.cell
def _(local_steps, problem):
    sizes = np.geomspace(1e-7, 0.1, 7)
    limits = {
        theorem: theory.sweep(problem, fs.FALD(sizes[0], local_steps.value), step_size=sizes, theorem=theorem)
        for theorem in ("fa_ld.w2_bound", "fa_ld.w2_recursion")
    }
    return limits, sizes


@app.cell
def _(bound, law, limits, recursion, sizes, step_size):
    looks = {"the theorem": (COLOURS[1], DASHED), "its argument, step by step": (COLOURS[2], DOTTED),
             "exact law": (COLOURS[0], SOLID)}
    at_the_start = rule("distance at the start", PURPLE, y=bound.start_distance)

    def curves(x, *values):
        """The theorem, the recursion and the truth."""
        return [line(name, x, value, colour, dash=dash)
                for (name, (colour, dash)), value in zip(looks.items(), values, strict=True)]

    shown = np.unique(np.linspace(0, len(bound.rounds) - 1, 40).astype(int))
    terms = zip(bound.terms.items(), COLOURS[3:], (SOLID, DASHED), strict=False)
    picture = together(
        chart(
            *curves(bound.rounds[shown], bound.value[shown], recursion.value[shown], law.w2()[shown]),
            at_the_start, x="rounds", y="W2 to the posterior", log="y", title="promise and truth",
        ),
        chart(
            *(line(name, bound.rounds[shown], value[shown], colour, dash=dash)
              for (name, value), colour, dash in terms),
            x="rounds", y="terms of the theorem", log="y", title="what the theorem is made of",
        ),
        chart(
            *curves(sizes, *(limits[theorem]["bound"] for theorem in limits), limits["fa_ld.w2_bound"]["w2"]),
            at_the_start, rule("step size set above", GREY, x=step_size.value),
            x="step size", y="W2 after many rounds", log="xy", title="their limits",
        ),
    )
    picture
    return (picture,)


@app.cell(hide_code=True)
def _(bound, recursion, verdict):
    def _says(one):
        if not one.hypotheses_hold:
            return f"is outside its hypotheses ({'; '.join(one.violated)})"
        if one.always_vacuous:
            return f"is vacuous: its limit {one.floor:.3g} is above the start's {one.start_distance:.3g}"
        if one.is_vacuous:
            return f"is vacuous up to this round, and its limit is {one.floor:.3g}"
        return f"says something: it ends at {one.value[-1]:.3g}, the start is at {one.start_distance:.3g}"

    _largest = max(bound.terms, key=lambda name: bound.terms[name][-1])
    measured = mo.md(f"""
    **Measured.** The theorem {_says(bound)}. The recursion {_says(recursion)}. Of the theorem's terms at the
    last round, the largest is *{_largest}*. In the words of `theory.check`: {verdict.message}.
    """)
    measured
    return (measured,)


@app.cell(hide_code=True)
def _(bound, constants, recursion):
    hypotheses = [
        {"of": name, "hypothesis": one.name, "holds": one.holds, "margin": round(one.margin, 4)}
        for name, statement in (("theorem", bound), ("recursion", recursion)) for one in statement.assumptions
    ]
    _names = ("strong_convexity", "smoothness", "heterogeneity", "dim", "initial_distance")
    known = [{"constant": name, "value": round(getattr(constants, name), 4)} for name in _names]
    mo.accordion({
        "What the statements know of the problem": mo.ui.table(known, selection=None),
        "What they suppose": mo.ui.table(hypotheses, selection=None),
    })
    return hypotheses, known


@app.cell(hide_code=True)
def _(algorithm, problem):
    def board():
        told = theory.scoreboard(problem, algorithm, n_rounds=30, everything=False)
        told = told[["theorem", "quantity", "verdict", "bound", "exact", "ratio", "vacuous", "hypotheses"]]
        digits = dict.fromkeys(("bound", "exact", "ratio"), "{:.3g}".format)
        return mo.ui.table(
            told, selection=None, format_mapping=digits, show_column_summaries=False, page_size=20
        )

    mo.accordion({"Every statement about FA-LD, on this problem, at 30 rounds": board}, lazy=True)
    return (board,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. Find the largest step size at which the theorem is not vacuous here, and the one of the recursion. How
       many communications does the algorithm really need with each, to halve the distance of the start?
    2. The step shrinks to a quarter. By what factor do the limits of the theorem, of the recursion and of the
       exact law shrink?
    3. How close can any problem with this condition number and this K come to the theorem? Guess a ratio of
       truth and promise, after many rounds.
    """)
    return


@app.cell(hide_code=True)
def _(algorithm, bound, problem):
    def answer_1():
        lines = []
        for theorem in ("fa_ld.w2_bound", "fa_ld.w2_recursion"):
            largest = theory.tuning.informative_steps(theorem, problem, algorithm, n_grid=29).largest
            run = fs.FALD(largest, algorithm.local_steps)
            rounds = theory.tuning.rounds_to(problem, run, bound.start_distance / 2)
            lines.append(f"`{theorem}`: up to {largest:.3g}, where {rounds} rounds halve the truth")
        return mo.md(f"""
        - {lines[0]}
        - {lines[1]}

        Who trusts a bound takes the step that it allows; the communications are the price. For an accuracy
        that you want, `theory.tuning.compare` and `theory.tuning.plan_by_recursion` put it into numbers.
        """)

    mo.accordion({"Answer 1": answer_1}, lazy=True)
    return (answer_1,)


@app.cell(hide_code=True)
def _(algorithm, problem):
    def answer_2():
        small, large = 2.5e-5, 1e-4
        factors = {}
        for theorem in ("fa_ld.w2_bound", "fa_ld.w2_recursion"):
            two = theory.sweep(problem, algorithm, step_size=[small, large], theorem=theorem)
            factors[theorem] = two["bound"].iloc[0] / two["bound"].iloc[1]
            factors["exact"] = two["w2"].iloc[0] / two["w2"].iloc[1]
        return mo.md(f"""
        From step size {large:g} to {small:g} the theorem's limit is multiplied by
        {factors["fa_ld.w2_bound"]:.3g}, the recursion's by {factors["fa_ld.w2_recursion"]:.3g} and the exact
        one by {factors["exact"]:.3g}. (A root would give {np.sqrt(small / large):.3g}, proportion
        {small / large:.3g}.) The theorem has to hold for potentials that are no parabolas, too.
        """)

    mo.accordion({"Answer 2": answer_2}, lazy=True)
    return (answer_2,)


@app.cell(hide_code=True)
def _(curvature, local_steps):
    def answer_3():
        members = theory.worst_case.ProblemClass(condition=curvature.value, local_steps=local_steps.value)
        found = theory.worst_case.search("fa_ld.w2_bound", members, budget=60, objective="stationary")
        return mo.md(f"""
        In {found.evaluations} trials (`theory.worst_case.search`) the largest ratio of truth and promise, of
        their limits, is {found.value:.3g}, at step size {found.algorithm.step_size:.3g}. The restarts of the
        search {"agree" if found.agreed else "do not agree yet"}. What is found is a lower end: a larger
        budget may find a closer problem.
        """)

    mo.accordion({"Answer 3": answer_3}, lazy=True)
    return (answer_3,)


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("deng2021")} Theorems 4.7 and 4.9 (`fa_ld.w2_bound`). The recursion (`fa_ld.w2_recursion`)
    is derived here from their coupling; `docs/losses_federated.md` says where the two part.

    - `python -m reproduce bounds_one_run`: the same three curves, with replicas
    - `python -m reproduce bounds_conditions`: limits against condition number and heterogeneity
    - `python -m reproduce bounds_worst_case`: the worst problem of a class
    """)
    return


if __name__ == "__main__":
    app.run()
