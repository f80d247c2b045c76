"""Leapfrog steps and dimension: what FA-HMC gains by walking far before it forgets its direction."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Leapfrog steps and dimension")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, SOLID, chart, line, rule, together

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS, GREY


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # Leapfrog steps and dimension

    ## To read aloud

    A drunkard takes a step and forgets the direction. After a hundred steps he is about ten steps away.
    That is Langevin dynamics. Somebody who is pushed on a sledge glides for a while, over hills and
    through valleys, and only then is pushed again in a new direction. That is Hamiltonian Monte Carlo: the
    glide is computed in small steps, called leapfrog steps, and every one of them costs a gradient.

    In the federated form every client glides over its own landscape, for some local updates, and then the
    server averages. How far should a client glide between two pushes? A short glide is a drunkard's step. But
    a long one need not be better: in a valley the sledge goes up the other side, stops, and comes back. And
    while it glides alone, it learns about its own landscape only.

    The landscape here has two kinds of clients, steep and flat, and they disagree about where the bottom is.
    It is the example with which the paper proves how fast the communications have to grow with the
    dimension. Its coordinates are all alike, so that we can go to a thousand dimensions and still know the
    law of the average exactly. What you see is computed, none of it is sampled.

    Guess before you move the sliders. With ten leapfrog steps in place of one: does it need fewer
    communications? Does it need fewer gradients, although each glide now costs ten? Where is the best
    length, and is it at the point where the sledge has come to the bottom, or where it turns back? And if the
    dimension grows a hundredfold, by how much do the communications grow?
    """)
    return


@app.cell
def _():
    leapfrog_steps = mo.ui.slider(2, 40, value=10, show_value=True, label="leapfrog steps K")
    step_size = mo.ui.slider(
        steps=[0.02, 0.05, 0.1, 0.2, 0.4], value=0.05, show_value=True, label="leapfrog step size"
    )
    local_steps = mo.ui.slider(1, 10, value=2, show_value=True, label="local updates T")
    dim = mo.ui.slider(
        steps=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], value=10, show_value=True, label="dimension"
    )
    accuracy = mo.ui.slider(steps=[0.1, 0.2, 0.3, 0.5], value=0.3, show_value=True, label="accuracy in W2")
    mo.hstack([mo.vstack([leapfrog_steps, step_size, local_steps]), mo.vstack([dim, accuracy])], wrap=True)
    return accuracy, dim, leapfrog_steps, local_steps, step_size


@app.cell
def _(dim, leapfrog_steps, local_steps, step_size):
    problem = fs.papers.fa_hmc_two_groups(dim.value)  # curvatures 1 and 1/4, in every coordinate
    algorithm = fs.FAHMC(step_size.value, leapfrog_steps.value, local_steps.value)
    single = fs.FAHMC(step_size.value, 1, local_steps.value)  # one leapfrog step
    law, law_single = (
        theory.exact_law(problem, one, n_rounds=200, record=np.arange(0, 201, 5), covariance="diagonal")
        for one in (algorithm, single)
    )
    return algorithm, law, law_single, problem


@app.cell
def _(accuracy, dim, leapfrog_steps, local_steps, step_size):
    table = theory.sweep(
        fs.papers.fa_hmc_two_groups(1),  # coordinates are alike: W2 in d of them is sqrt(d) times that in one
        fs.FAHMC(step_size.value, 1, local_steps.value),
        leapfrog_steps=sorted({1, 2, 3, 4, 5, 7, 10, 13, 17, 22, 28, 36, 46, 60, leapfrog_steps.value}),
        eps=accuracy.value / np.sqrt(dim.value),
    )
    table["w2"] *= np.sqrt(dim.value)
    reached = table.dropna(subset=["rounds"]).astype({"rounds": float, "gradients": float})
    return reached, table


@app.cell
def _(accuracy, law, law_single, leapfrog_steps, reached, step_size):
    length = reached["leapfrog_steps"] * step_size.value
    picture = together(
        chart(
            line(f"K = {leapfrog_steps.value}", law.rounds, law.w2(), COLOURS[0]),
            line("K = 1", law.rounds, law_single.w2(), COLOURS[2], dash=DASHED),
            rule("accuracy", GREY, y=accuracy.value),
            x="rounds", y="W2 to the posterior", log="y", title="exact laws, round by round",
        ),
        chart(
            line("gradients", length, reached["gradients"], COLOURS[1], points=True),
            line("communications", length, reached["rounds"], COLOURS[3], dash=DASHED, points=True),
            rule("the glide set above", GREY, x=leapfrog_steps.value * step_size.value),
            x="length of a glide: K times the step size", y="up to the accuracy", log="y",
            title="where it is reached",
        ),
    )
    picture
    return (picture,)


@app.cell(hide_code=True)
def _(accuracy, leapfrog_steps, step_size, table):
    _single, _row = (table[table["leapfrog_steps"] == k].iloc[0] for k in (1, leapfrog_steps.value))
    if table["rounds"].isna().loc[[_single.name, _row.name]].any():
        _verdict = " and ".join(
            f"K = {one['leapfrog_steps']} does not get there ({one['reason']})" if one["reason"]
            else f"K = {one['leapfrog_steps']} needs {one['rounds']} communications"
            for one in (_single, _row)
        )
    else:
        _cheaper = "fewer" if _row["gradients"] < _single["gradients"] else "no fewer"
        _verdict = (
            f"K = {leapfrog_steps.value} needs {_row['rounds']} communications where K = 1 needs "
            f"{_single['rounds']}, and {_cheaper} gradients: {_row['gradients']} against "
            f"{_single['gradients']}"
        )
    measured = mo.md(f"""
    **Measured.** A glide has the length {leapfrog_steps.value * step_size.value:.3g}. W2 ends at
    {_row["w2"]:.3g}, with one leapfrog step at {_single["w2"]:.3g}. To W2 = {accuracy.value}, {_verdict}.
    """)
    measured
    return (measured,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. Leave the step size as it is, and find the number of leapfrog steps that needs the fewest gradients.
       How long is that glide, measured in quarter turns of the average landscape? (A quarter turn brings a
       sledge that starts at rest to the bottom.)
    2. From a hundred dimensions to a thousand, with the best step size for each: by what factor do the
       communications grow? Compare it with what the theorems say.
    """)
    return


@app.cell(hide_code=True)
def _(accuracy, dim, local_steps, problem, reached, step_size):
    def answer_1():
        quarter_turn = np.pi / 2 * np.sqrt(problem.target().variances[0])
        if reached.empty:
            found = f"none of the numbers of leapfrog steps in the picture reaches W2 = {accuracy.value}"
        else:
            best = reached.loc[reached["gradients"].idxmin()]
            glide = best["leapfrog_steps"] * step_size.value
            found = (
                f"of the numbers in the picture K = {best['leapfrog_steps']:.0f} needs the fewest gradients, "
                f"{best['gradients']:.0f} in {best['rounds']:.0f} communications: a glide of {glide:.3g}, or "
                f"{glide / quarter_turn:.2g} quarter turns"
            )
        return mo.md(f"""
        At the step size {step_size.value}, T = {local_steps.value} and dimension {dim.value}, {found}. (A
        quarter turn of the average landscape has the length {quarter_turn:.3g}.) Two things can stop a glide
        that is longer: the sledge comes back, or each client ends near its own bottom, which leaves a bias.
        Set T to its smallest and to its largest value: which of them was it here?
        """)

    mo.accordion({"Answer 1": answer_1}, lazy=True)
    return (answer_1,)


@app.cell(hide_code=True)
def _(accuracy, algorithm, leapfrog_steps, local_steps):
    def answer_2():
        dims = [1, 10, 100, 1000]

        def fewest_rounds(leaps):
            """At the best step size, for each dimension."""
            sizes = np.geomspace(2e-3, 2.0, 60) / leaps
            tried = fs.FAHMC(0.1, leaps, local_steps.value)
            tables = (
                theory.sweep(fs.papers.fa_hmc_two_groups(1), tried, step_size=sizes,
                             eps=accuracy.value / np.sqrt(d))
                for d in dims
            )
            return dict(zip(dims, (float(table["rounds"].min()) for table in tables), strict=True))

        by_dimension = {leaps: fewest_rounds(leaps) for leaps in (1, leapfrog_steps.value)}
        small, large = dims[-2:]
        known = {d: theory.constants(fs.papers.fa_hmc_two_groups(d), algorithm) for d in (small, large)}
        rates = {
            name: rate(known[large], algorithm, eps=accuracy.value).value[0]
            / rate(known[small], algorithm, eps=accuracy.value).value[0]
            for name, rate in (("upper", theory.fa_hmc.rounds_rate), ("lower", theory.fa_hmc.lower_rate))
        }
        growth = "; ".join(
            f"K = {leaps}: by a factor of {rounds[large] / rounds[small]:.3g}"
            for leaps, rounds in by_dimension.items()
        )
        said = mo.md(f"""
        From {small} to {large} dimensions the communications grow, at the best step size of each: {growth}.

        Theorem 4.1 promises, with its rule for the step size, growth by {rates["upper"]:.3g}
        (`fa_hmc.rounds_rate`). Theorem C.1, of exact trajectories, has {rates["lower"]:.3g} as the least that
        this example needs (`fa_hmc.lower_rate`). Both are rates, true up to a constant in the limit of many
        dimensions and high accuracy, so that two dimensions contradict neither. Where do the factors go when
        the accuracy gets finer?
        """)
        looks = zip(by_dimension.items(), (COLOURS[2], COLOURS[0]), (DASHED, SOLID), strict=True)
        return mo.vstack([said, chart(
            *(line(f"K = {leaps}, best step size", dims, list(rounds.values()), colour, dash=dash,
                   points=True) for (leaps, rounds), colour, dash in looks),
            x="dimension", y="communications to the accuracy", log="xy",
        )])

    mo.accordion({"Answer 2": answer_2}, lazy=True)
    return (answer_2,)


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("liang2024")} Algorithm 3, Theorem 4.1 and section 4.1, section 5.2; Theorem C.1 and its
    proof in the supplement.

    - `python -m reproduce fa_hmc_fig2`: rounds against dimension, with the paper's step rule
    - `python -m reproduce fa_hmc_lower_bound`: this example, as in Theorem C.1
    - `python -m reproduce fa_hmc_fig1c`: rounds against local updates
    """)
    return


if __name__ == "__main__":
    app.run()
