"""Stale gradients: how old a gradient may be, and the cliff behind that."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Stale gradients and their cliff")

with app.setup:
    import marimo as mo
    import numpy as np
    from matplotlib.figure import Figure

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # Stale gradients and their cliff

    ## To read aloud

    Have you ever stood in a shower whose water takes some seconds to become warm? You turn the tap, nothing
    happens, you turn further, and then it is far too hot. You turn back, nothing happens. With patience one
    learns to turn slowly. With haste it never settles.

    Asynchronous sampling is such a shower. A server holds the point, and many workers compute gradients for
    it. While a worker computes, the server has already moved on. So every gradient that arrives is old: it
    tells the way downhill from where the server was some updates ago. The number of updates in between is
    called the staleness.

    There are two questions here, and it is good to keep them apart. The first: as long as all is calm, how
    much worse are the samples because gradients are old? The second: when does it stop being calm? Below a
    certain step size everything settles. Above it the point swings wider and wider. Let us call that step
    size the cliff. On the left you see the distance to the posterior, update by update, with fresh and with
    old gradients. On the right you see the cliff, as a line, and where we stand, as a dot. All of it is
    computed from the exact law.

    Guess before you move the sliders. If gradients are twice as old, how much smaller must the step be? Close
    to the cliff, do you see in the distance that it is near? And if there are more workers, there are more
    updates in a second, but every gradient is older: is there a number of workers that is best?
    """)
    return


@app.cell
def _():
    staleness = mo.ui.slider(1, 30, value=8, show_value=True, label="staleness, in updates")
    step_size = mo.ui.slider(
        steps=[0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1],
        value=0.03, show_value=True, label="step size",
    )
    curvature = mo.ui.slider(1.0, 4.0, 0.5, value=3.0, show_value=True, label="largest curvature (least: 1)")
    noise = mo.ui.slider(0.0, 4.0, 1.0, value=0.0, show_value=True, label="noise of the gradients")
    friction = mo.ui.slider(0.5, 4.0, 0.5, value=2.0, show_value=True, label="friction, of SGHMC")
    mo.hstack([mo.vstack([staleness, step_size, curvature]), mo.vstack([noise, friction])])
    return curvature, friction, noise, staleness, step_size


@app.cell
def _(curvature, noise):
    problem = fs.Quadratic(
        hessians=[[1.0, curvature.value]],
        minimizers=[[2.0, 2.0]],
        gradient_noise=noise.value or None,
    )
    target = problem.target()
    return problem, target


@app.cell
def _(problem, staleness, step_size):
    stale, fresh = (fs.StaleSGLD(step_size.value, staleness=tau) for tau in (staleness.value, 0))
    stability = stale.stability(problem)
    law, law_fresh = (
        theory.exact_law(problem, one, n_rounds=600, allow_unstable=True) for one in (stale, fresh)
    )
    return fresh, law, law_fresh, stability, stale


@app.cell
def _(friction, problem):
    ages = np.array([0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 25, 30])

    def cliff(make):
        """The largest stable step size at each age."""
        return np.array([make(int(age)).stability(problem).max_step_size for age in ages])

    sgld = cliff(lambda age: fs.StaleSGLD(0.001, staleness=age))
    sghmc = cliff(lambda age: fs.StaleSGHMC(0.001, friction.value, staleness=age))
    return ages, sghmc, sgld


@app.cell
def _(ages, law, law_fresh, sghmc, sgld, staleness, step_size):
    picture = Figure(figsize=(10.5, 4.4), layout="constrained")
    _left, _right = picture.subplots(1, 2)
    fs.plot(law, law_fresh, ax=_left, legend=False)
    _left.set_xlabel("updates")
    _left.legend([f"exact law, staleness {staleness.value}", "exact law, fresh"], fontsize=9, frameon=False)
    _right.plot(ages, sgld, "o-", color=COLOURS[0], markersize=4, label="cliff of SGLD")
    _right.plot(ages, sghmc, "s-", color=COLOURS[2], markersize=4, label="cliff of SGHMC (its own steps)")
    _right.plot([staleness.value], [step_size.value], "o", color=COLOURS[1], markersize=9, label="SGLD here")
    _right.set(xlabel="staleness", ylabel="largest stable step size", yscale="log")
    _right.legend(fontsize=9, frameon=False)
    picture
    return (picture,)


@app.cell(hide_code=True)
def _(fresh, problem, stability, stale, step_size, target):
    _share = step_size.value / stability.max_step_size
    _fresh = theory.stationary_law(problem, fresh).w2(target)
    if stability.stable:
        _end = theory.stationary_law(problem, stale).w2(target)
        _worse = "nearer" if _end < _fresh else "farther"
        _said = (
            f"calm, at {_share:.3g} of the cliff's step size. It ends at W2 = {_end:.3g} from the posterior, "
            f"{_worse} than with fresh gradients ({_fresh:.3g})"
        )
    else:
        _said = (
            f"over the cliff, with {_share:.3g} times the step size that is still stable. Every update "
            f"multiplies the swing by {stability.radius:.3g}; with fresh gradients it would end at W2 = "
            f"{_fresh:.3g}"
        )
    measured = mo.md(f"""
    **Measured.** With gradients that are {stale.staleness} updates old the chain is {_said}.
    """)
    measured
    return (measured,)


@app.cell
def _(fresh, problem, stability, staleness):
    cliffs = {0: fresh.stability(problem).max_step_size, staleness.value: stability.max_step_size}
    swept = theory.sweep(
        problem,
        fs.StaleSGLD(0.001),
        staleness=list(cliffs),
        step_size=np.geomspace(0.001, 0.99 * cliffs[0], 80),
    )
    return cliffs, swept


@app.cell
def _(problem, step_size, target):
    times = (20, 60)
    n_workers = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 31])

    def after(time, workers):
        """W2 when equally fast workers have computed for so long: W updates a unit of time, of age W - 1."""
        updates = int(time * workers)
        chain = fs.StaleSGLD(step_size.value, staleness=int(workers) - 1)
        return theory.exact_law(problem, chain, updates, record=[updates], allow_unstable=True).w2(target)[-1]

    by_workers = {time: np.array([after(time, workers) for workers in n_workers]) for time in times}
    return by_workers, n_workers, times


@app.cell
def _(by_workers, cliffs, n_workers, swept):
    second_picture = Figure(figsize=(10.5, 4.2), layout="constrained")
    _left, _right = second_picture.subplots(1, 2)
    for (_age, _rows), _colour in zip(swept.groupby("staleness"), (COLOURS[1], COLOURS[0]), strict=True):
        _left.plot(_rows["step_size"], _rows["w2"], color=_colour, label=f"staleness {_age}")
        _left.axvline(cliffs[_age], color=_colour, linestyle=":", linewidth=1.2)
    _left.set(xscale="log", yscale="log", xlabel="step size (dotted: the cliffs)", ylabel="$W_2$ in the end")
    for _number, (_time, _distances) in enumerate(by_workers.items()):
        _right.plot(n_workers, _distances, "o-", color=COLOURS[2 + _number], markersize=4,
                    label=f"after the time of {_time} gradients")
    _right.set(xscale="log", yscale="log", xlabel="workers", ylabel="$W_2$ at the step size above")
    _right.set_ylim(top=min(100.0, _right.get_ylim()[1]))  # the rest is beyond the cliff
    for _axes in (_left, _right):
        _axes.legend(fontsize=9, frameon=False)
    second_picture
    return (second_picture,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. Gradients get twice as old. By what factor does the largest stable step size shrink?
    2. Somebody takes nine tenths of the largest stable step size, and is proud of it. How far are the
       samples from the posterior, compared with fresh gradients at the same step size? How does that change
       at a tenth of the cliff?
    3. With twice as many workers, each as fast as the others, there are twice as many updates in a minute,
       and they are about twice as old. How many workers are best at the step size above, if time is short?
       And if there is more of it?
    """)
    return


@app.cell(hide_code=True)
def _(curvature, problem, stability, staleness):
    _tau = staleness.value
    _older = fs.StaleSGLD(0.001, staleness=2 * _tau).stability(problem).max_step_size
    _formula = 2 * np.sin(np.pi / (4 * _tau + 2)) / curvature.value
    _agrees = "agrees with" if np.isclose(_formula, stability.max_step_size, rtol=1e-6) else "differs from"
    answer_1 = mo.md(rf"""
    From age {_tau} to age {2 * _tau} the cliff moves from {stability.max_step_size:.4g} to {_older:.4g}, by a
    factor of {_older / stability.max_step_size:.3g}.

    By hand: with x' = x - h a x(old) a swing z obeys $z^{{\tau+1}} = z^\tau - h a$, and where it neither
    grows nor shrinks, $h a = 2 \sin(\pi / (4 \tau + 2))$. At the largest curvature that is
    {_formula:.4g}, which {_agrees} the cliff that the exact law has. For old gradients the sine is its
    argument, and the step has to go like one over the age.
    """)
    mo.accordion({"Answer 1": answer_1})
    return (answer_1,)


@app.cell(hide_code=True)
def _(problem, stability, staleness, target):
    _rows = []
    for _share in (0.9, 0.1):
        _size = _share * stability.max_step_size
        _old, _new = (
            theory.stationary_law(problem, fs.StaleSGLD(_size, staleness=tau)).w2(target)
            for tau in (staleness.value, 0)
        )
        _rows.append(
            f"at {_share} of the cliff: W2 = {_old:.3g} with old gradients, {_new:.3g} with fresh ones, "
            f"{_old / _new:.3g} times as far"
        )
    answer_2 = mo.md(f"""
    - {_rows[0]}
    - {_rows[1]}

    A stable chain need not be a good one. How much wider old gradients make the samples depends on age times
    step size times curvature. Theorems 3 and 4 (`stale.mse_rate`, `stale.variance_rate`) suppose bounded
    moments along the chain, and here these bound the age times the step size.
    """)
    mo.accordion({"Answer 2": answer_2})
    return (answer_2,)


@app.cell(hide_code=True)
def _(by_workers, n_workers, step_size, times):
    _best = {time: n_workers[by_workers[time].argmin()] for time in times}
    _ages = fs.Workers(int(n_workers[-1]), "deterministic").history(1000).ages
    answer_3 = mo.md(f"""
    At the step size {step_size.value}, after the time of {times[0]} gradients {_best[times[0]]} workers are
    best of those tried, after the time of {times[1]} gradients {_best[times[1]]}. Does a smaller step size
    keep more workers useful? Move it; `stale_speedup_limit` works it out.

    That gradients are one update younger than there are workers can be watched: of {n_workers[-1]} simulated
    ones (`fs.Workers`) the oldest gradient is {_ages.max()} updates old, and the mean age {_ages.mean():.3g}.
    """)
    mo.accordion({"Answer 3": answer_3})
    return (answer_3,)


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("chen2016")} Theorems 3 and 4, Algorithm 1, section 5.1.

    - `python -m reproduce stale_fig1`: the mean squared error against iterations
    - `python -m reproduce stale_optimal_step`: the best step size by age
    - `python -m reproduce stale_speedup_limit`: how many workers are worth having
    """)
    return


if __name__ == "__main__":
    app.run()
