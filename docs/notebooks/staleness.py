"""Stale gradients: how old a gradient may be, and the cliff behind that."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Stale gradients and their cliff")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, DOTTED, SOLID, chart, line, rule, together

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS, GREY


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
    old gradients. On the right you see the cliff, as a line, and where we stand, as a cross. All of it is
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
    mo.hstack([mo.vstack([staleness, step_size, curvature]), mo.vstack([noise, friction])], wrap=True)
    return curvature, friction, noise, staleness, step_size


@app.cell
def _(curvature, noise):
    problem = fs.Quadratic(
        hessians=[[1.0, curvature.value]],
        minimizers=[[2.0, 2.0]],
        gradient_noise=noise.value or None,
    )
    return (problem,)


@app.cell
def _(friction, problem, staleness, step_size):
    stale, fresh = (fs.StaleSGLD(step_size.value, staleness=tau) for tau in (staleness.value, 0))
    law, law_fresh = (
        theory.exact_law(problem, one, n_rounds=600, record=np.arange(0, 601, 15), allow_unstable=True)
        for one in (stale, fresh)
    )
    by_update = chart(
        line(f"staleness {staleness.value}", law.rounds, law.w2(), COLOURS[1]),
        line("fresh gradients", law.rounds, law_fresh.w2(), COLOURS[0], dash=DASHED),
        x="updates", y="W2 to the posterior", log="y", title="exact laws, update by update",
    )

    ages = np.arange(31)
    limits = [fs.StaleSGLD(0.001, staleness=int(age)).stability(problem).max_step_size for age in ages]
    sghmc = fs.StaleSGHMC(0.001, friction.value, staleness=staleness.value)
    by_age = chart(
        line("SGLD", ages, limits, COLOURS[2]),
        line("SGHMC (its own steps), here", [staleness.value], [sghmc.stability(problem).max_step_size],
             COLOURS[3], points=True),
        rule("SGLD stands here", GREY, x=staleness.value),
        rule("SGLD stands here", GREY, y=step_size.value),
        x="staleness", y="largest stable step size", log="y", title="the cliff",
    )

    cliffs = {age: limits[age] for age in (staleness.value, 0)}
    shares = np.r_[np.geomspace(0.01, 0.8, 8), 0.9, 0.97, 0.99]
    swept = [theory.sweep(problem, fs.StaleSGLD(0.001, staleness=age), step_size=shares * cliff)
             for age, cliff in cliffs.items()]
    by_step = chart(
        *(line(label, rows["step_size"], rows["w2"], colour, dash=dash) for label, rows, colour, dash in zip(
            (f"staleness {staleness.value}", "fresh gradients"), swept, COLOURS[1::-1], (SOLID, DASHED),
            strict=True)),
        *(rule("their cliffs", GREY, x=cliff, dash=DOTTED) for cliff in cliffs.values()),
        x="step size", y="W2 in the end", log="xy", title="after many updates",
    )
    picture = together(by_update, by_age, by_step)
    picture
    return fresh, picture, stale


@app.cell(hide_code=True)
def _(fresh, problem, stale, step_size):
    stability, target = stale.stability(problem), problem.target()
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
    return measured, stability, target


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
def _(curvature, problem, stability, staleness, step_size, target):
    def answer_1():
        tau = staleness.value
        older = fs.StaleSGLD(0.001, staleness=2 * tau).stability(problem).max_step_size
        formula = 2 * np.sin(np.pi / (4 * tau + 2)) / curvature.value
        agrees = "agrees with" if np.isclose(formula, stability.max_step_size, rtol=1e-6) else "differs from"
        return mo.md(rf"""
        From age {tau} to age {2 * tau} the cliff moves from {stability.max_step_size:.4g} to {older:.4g}, by
        a factor of {older / stability.max_step_size:.3g}.

        By hand: with x' = x - h a x(old) a swing z obeys $z^{{\tau+1}} = z^\tau - h a$, and where it neither
        grows nor shrinks, $h a = 2 \sin(\pi / (4 \tau + 2))$. At the largest curvature that is
        {formula:.4g}, which {agrees} the cliff that the exact law has. For old gradients the sine is its
        argument, and the step has to go like one over the age.
        """)

    def answer_2():
        rows = []
        for share in (0.9, 0.1):
            size = share * stability.max_step_size
            old, new = (
                theory.stationary_law(problem, fs.StaleSGLD(size, staleness=tau)).w2(target)
                for tau in (staleness.value, 0)
            )
            rows.append(
                f"at {share} of the cliff: W2 = {old:.3g} with old gradients, {new:.3g} with fresh ones, "
                f"{old / new:.3g} times as far"
            )
        return mo.md(f"""
        - {rows[0]}
        - {rows[1]}

        A stable chain need not be a good one. How much wider old gradients make the samples depends on age
        times step size times curvature. Theorems 3 and 4 (`stale.mse_rate`, `stale.variance_rate`) suppose
        bounded moments along the chain, and here these bound the age times the step size.
        """)

    def answer_3():
        n_workers = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 31])

        def after(time, workers):
            """W2 when equally fast workers have computed for so long: W updates a unit, of age W - 1."""
            updates = int(time * workers)
            chain = fs.StaleSGLD(step_size.value, staleness=int(workers) - 1)
            law = theory.exact_law(problem, chain, updates, record=[updates], allow_unstable=True)
            return law.w2(target)[-1]

        by_time = {time: np.array([after(time, workers) for workers in n_workers]) for time in (20, 60)}
        (short, early), (long, late) = by_time.items()
        ages = fs.Workers(int(n_workers[-1]), "deterministic").history(1000).ages
        said = mo.md(f"""
        At the step size {step_size.value}, after the time of {short} gradients
        {n_workers[early.argmin()]} workers are best of those tried, after the time of {long} gradients
        {n_workers[late.argmin()]}. Does a smaller step size keep more workers useful? Move it;
        `stale_speedup_limit` works it out.

        That gradients are one update younger than there are workers can be watched: of {n_workers[-1]}
        simulated ones (`fs.Workers`) the oldest gradient is {ages.max()} updates old, and the mean age
        {ages.mean():.3g}.
        """)
        looks = zip(by_time.items(), COLOURS[2:4], (SOLID, DASHED), strict=True)
        return mo.vstack([said, chart(
            *(line(f"after the time of {time} gradients", n_workers,
                   np.where(distances < 100.0, distances, np.nan),  # the rest is beyond the cliff
                   colour, dash=dash, points=True) for (time, distances), colour, dash in looks),
            x="workers", y="W2 at the step size above", log="xy", width=560,
        )])

    mo.accordion({"Answer 1": answer_1, "Answer 2": answer_2, "Answer 3": answer_3}, lazy=True)
    return answer_1, answer_2, answer_3


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
