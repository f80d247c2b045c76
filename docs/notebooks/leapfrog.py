"""Leapfrog steps and dimension: what FA-HMC gains by walking far before it forgets its direction."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Leapfrog steps and dimension")

with app.setup:
    import marimo as mo
    import numpy as np
    from matplotlib.figure import Figure

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
    mo.hstack([mo.vstack([leapfrog_steps, step_size, local_steps]), mo.vstack([dim, accuracy])])
    return accuracy, dim, leapfrog_steps, local_steps, step_size


@app.cell
def _(dim, leapfrog_steps, local_steps, step_size):
    problem = fs.papers.fa_hmc_two_groups(dim.value)  # curvatures 1 and 1/4, in every coordinate
    algorithm = fs.FAHMC(step_size.value, leapfrog_steps.value, local_steps.value)
    single = fs.FAHMC(step_size.value, 1, local_steps.value)  # one leapfrog step
    law, law_single = (
        theory.exact_law(problem, one, n_rounds=200, covariance="diagonal") for one in (algorithm, single)
    )
    return algorithm, law, law_single, problem


@app.cell
def _(accuracy, local_steps, problem, step_size):
    table = theory.sweep(
        problem,
        fs.FAHMC(step_size.value, 1, local_steps.value),
        leapfrog_steps=list(range(1, 61)),
        eps=accuracy.value,
    )
    reached = table.dropna(subset=["rounds"]).astype({"rounds": float, "gradients": float})
    return reached, table


@app.cell
def _(accuracy, law, law_single, leapfrog_steps, reached, step_size):
    picture = Figure(figsize=(10.5, 4.6), layout="constrained")
    _left, _right = picture.subplots(1, 2)
    fs.plot(law, law_single, ax=_left, legend=False)
    _left.axhline(accuracy.value, color=GREY, linewidth=1.0)
    _left.legend([f"exact law, K = {leapfrog_steps.value}", "exact law, K = 1"], fontsize=9, frameon=False)
    _length = reached["leapfrog_steps"] * step_size.value
    _right.plot(_length, reached["gradients"], "o-", color=COLOURS[1], markersize=4, label="gradients")
    _right.plot(_length, reached["rounds"], "o-", color=COLOURS[0], markersize=4, label="communications")
    _right.axvline(leapfrog_steps.value * step_size.value, color=GREY, linewidth=1.0, label="set above")
    _right.set(xlabel="length of a glide, K times the step size", ylabel="up to the accuracy", yscale="log")
    _right.legend(fontsize=9, frameon=False)
    picture
    return (picture,)


@app.cell(hide_code=True)
def _(accuracy, algorithm, leapfrog_steps, problem, step_size, table):
    _radius = algorithm.stability(problem).radius
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
    **Measured.** A glide has the length {leapfrog_steps.value * step_size.value:.3g}. A round multiplies what
    is left of the start by {_radius:.3g}, and W2 ends at {_row["w2"]:.3g}, with one leapfrog step at
    {_single["w2"]:.3g}. To W2 = {accuracy.value}, {_verdict}.
    """)
    measured
    return (measured,)


@app.cell
def _(accuracy, leapfrog_steps, local_steps):
    dims = np.array([1, 10, 100, 1000])
    in_one_dimension = fs.papers.fa_hmc_two_groups(1)

    def fewest_rounds(leaps):
        """At the best step size, for each dimension: W2 in d dimensions is sqrt(d) times that in one."""
        sizes = np.geomspace(2e-3, 2.0, 60) / leaps
        tried = fs.FAHMC(0.1, leaps, local_steps.value)
        tables = (
            theory.sweep(in_one_dimension, tried, step_size=sizes, eps=accuracy.value / np.sqrt(d))
            for d in dims
        )
        return np.array([table["rounds"].min() for table in tables], dtype=float)

    by_dimension = {leaps: fewest_rounds(leaps) for leaps in (1, leapfrog_steps.value)}
    return by_dimension, dims


@app.cell
def _(by_dimension, dim, dims):
    second_picture = Figure(figsize=(6.4, 4.2), layout="constrained")
    _axes = second_picture.subplots()
    for _number, (_leaps, _rounds) in enumerate(by_dimension.items()):
        _axes.plot(dims, _rounds, "o-", color=COLOURS[1 - _number], label=f"K = {_leaps}, best step size")
    _axes.axvline(dim.value, color=GREY, linewidth=1.0, label="set above")
    _axes.set(xscale="log", yscale="log", xlabel="dimension", ylabel="communications to the accuracy")
    _axes.legend(fontsize=9, frameon=False)
    second_picture
    return (second_picture,)


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
    quarter_turn = np.pi / 2 * np.sqrt(problem.target().variances[0])
    if reached.empty:
        _found = f"no number of leapfrog steps up to the last of the picture reaches W2 = {accuracy.value}"
    else:
        _best = reached.loc[reached["gradients"].idxmin()]
        _glide = _best["leapfrog_steps"] * step_size.value
        _found = (
            f"K = {_best['leapfrog_steps']:.0f} needs the fewest gradients, {_best['gradients']:.0f} in "
            f"{_best['rounds']:.0f} communications: a glide of {_glide:.3g}, or {_glide / quarter_turn:.2g} "
            "quarter turns"
        )
    answer_1 = mo.md(f"""
    At the step size {step_size.value}, T = {local_steps.value} and dimension {dim.value}, {_found}. (A
    quarter turn of the average landscape has the length {quarter_turn:.3g}.) Two things can stop a glide
    that is longer: the sledge comes back, or each client ends near its own bottom, which leaves a bias. Set T
    to its smallest and to its largest value: which of them was it here?
    """)
    mo.accordion({"Answer 1": answer_1})
    return answer_1, quarter_turn


@app.cell(hide_code=True)
def _(accuracy, algorithm, by_dimension, dims):
    _from, _to = 100, 1000
    _known = {d: theory.constants(fs.papers.fa_hmc_two_groups(d), algorithm) for d in (_from, _to)}
    _rates = {
        name: rate(_known[_to], algorithm, eps=accuracy.value).value[0]
        / rate(_known[_from], algorithm, eps=accuracy.value).value[0]
        for name, rate in (("upper", theory.fa_hmc.rounds_rate), ("lower", theory.fa_hmc.lower_rate))
    }
    _growth = "; ".join(
        f"K = {leaps}: by a factor of {(rounds[dims == _to] / rounds[dims == _from])[0]:.3g}"
        for leaps, rounds in by_dimension.items()
    )
    answer_2 = mo.md(f"""
    From {_from} to {_to} dimensions the communications grow, at the best step size of each: {_growth}.

    Theorem 4.1 promises, with its rule for the step size, growth by {_rates["upper"]:.3g}
    (`fa_hmc.rounds_rate`). Theorem C.1, of exact trajectories, has {_rates["lower"]:.3g} as the least that
    this example needs (`fa_hmc.lower_rate`). Both are rates, true up to a constant in the limit of many
    dimensions and high accuracy, so that two dimensions contradict neither. Where do the factors go when
    the accuracy gets finer?
    """)
    mo.accordion({"Answer 2": answer_2})
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
