"""Heterogeneity and local steps: what FA-LD saves, and what it pays, between two communications."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Heterogeneity and local steps")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, DOTTED, PURPLE, SOLID, chart, line, outline, rule, square, together

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS, GREY


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # Heterogeneity and local steps

    ## To read aloud

    Two hospitals want to learn from their patients together, and neither may show its data to the other.
    Each hospital alone would believe one thing; all the data together say another, the posterior that we
    are after. In the picture, the two grey ellipses are what each hospital would believe alone, and the
    dotted one is the posterior of both.

    In federated averaging Langevin dynamics the server sends out a point. Every client walks some steps from
    there: downhill on its own data, with a push of random noise at each step. Then the server averages where
    they arrived, and sends out the average. The walk never ends: where it is seen in the long run, that is
    the sample.

    Communication is slow, and walking is cheap. So we would like many local steps between two
    communications. But while a client walks alone, it walks towards its own belief. How different the
    clients are is called heterogeneity, and how long they walk alone is the number of local steps, K.

    The coloured ellipse is where the average ends. It is not estimated from samples: for clients like these
    the law after any number of rounds is known exactly, so that every difference you see is the
    algorithm's, and none is chance. On the right you see the distance to the posterior, round by round.

    Before you move a slider, guess. First: if clients walk longer alone, does the ellipse move, does it
    change its shape, or both? Second: does the distance fall faster, and where does it stop? Third, and this
    is the question people get wrong: if the clients disagree about the place, but are equally sure of it, do
    local steps hurt at all?
    """)
    return


@app.cell
def _():
    distance = mo.ui.slider(0.0, 4.0, 0.5, value=2.0, show_value=True, label="distance of the optima")
    curvature = mo.ui.slider(1.0, 10.0, 1.0, value=6.0, show_value=True, label="ratio of the curvatures")
    local_steps = mo.ui.slider(1, 50, value=20, show_value=True, label="local steps K")
    step_size = mo.ui.slider(
        steps=[0.001, 0.002, 0.005, 0.01, 0.02, 0.05], value=0.01, show_value=True, label="step size"
    )
    shared_noise = mo.ui.slider(0.0, 1.0, 0.25, value=0.0, show_value=True, label="shared part of the noise")
    accuracy = mo.ui.slider(
        steps=[0.02, 0.05, 0.1, 0.2, 0.5], value=0.1, show_value=True, label="accuracy wanted, in W2"
    )
    mo.hstack([mo.vstack([distance, curvature, local_steps]), mo.vstack([step_size, shared_noise, accuracy])],
              wrap=True)
    return (
        accuracy,
        curvature,
        distance,
        local_steps,
        shared_noise,
        step_size,
    )


@app.cell
def _(accuracy, curvature, distance, local_steps, shared_noise, step_size):
    apart = [[-distance.value / 2, 0.0], [distance.value / 2, 0.0]]
    problem = fs.Quadratic(hessians=[[1.0, curvature.value], [curvature.value, 1.0]], minimizers=apart)
    target = problem.target()

    algorithm = fs.FALD(step_size.value, local_steps.value, shared_noise=shared_noise.value)
    every_step = fs.FALD(step_size.value, shared_noise=shared_noise.value)  # communicates after every step
    end, end_every_step = (theory.stationary_law(problem, one) for one in (algorithm, every_step))

    alone = [fs.Gaussian(optimum, np.diag(1 / hessian))
             for hessian, optimum in zip(problem.hessians, problem.minimizers, strict=True)]
    ellipses = square(
        *(outline("each client alone", one.ellipse(0.95, 50), GREY, dash=DASHED) for one in alone),
        outline("posterior of all", target.ellipse(0.95, 50), PURPLE, dash=DOTTED),
        outline("where the average ends", end.ellipse(0.95, 50), COLOURS[0]),
        line("how far its mean is", *np.transpose([target.mean, end.mean]), COLOURS[1], points=True),
        x="coordinate 0", y="coordinate 1", title="95% ellipses",
    )
    rounds_seen = np.arange(0, 301, 10)
    law, law_every_step = (
        theory.exact_law(problem, one, n_rounds=300, record=rounds_seen) for one in (algorithm, every_step)
    )
    curves = chart(
        line("every step (K = 1)", law.rounds, law_every_step.w2(), COLOURS[2], dash=DASHED),
        line(f"K = {local_steps.value}", law.rounds, law.w2(), COLOURS[0]),
        rule("accuracy wanted", GREY, y=accuracy.value),
        x="rounds", y="W2 to the posterior", log="y", title="exact laws, round by round",
    )

    table = theory.sweep(
        problem,
        fs.FALD(step_size.value, shared_noise=shared_noise.value),
        step_size=[step_size.value / 4, step_size.value, 4 * step_size.value],
        local_steps=[1, 2, 5, 10, 20, 50],
        eps=accuracy.value,
    )
    looks = zip(table.groupby("step_size"), COLOURS[3:6], (SOLID, DASHED, DOTTED), strict=True)
    other_k = chart(
        *(line(f"step size {size:g}", rows["local_steps"], rows["rounds"].astype(float), colour, dash=dash,
               points=True) for (size, rows), colour, dash in looks),
        x="local steps K", y="rounds to the accuracy", log="xy", title="where it is reached",
    )
    picture = together(ellipses, curves, other_k)
    picture
    return algorithm, end, end_every_step, every_step, picture, problem, target


@app.cell(hide_code=True)
def _(accuracy, algorithm, end, end_every_step, every_step, local_steps, problem, target):
    rounds, rounds_every_step = (
        theory.tuning.rounds_to(problem, one, accuracy.value) for one in (algorithm, every_step)
    )
    if rounds is None:
        _saved = "never gets there: its limit is too far away"
    elif rounds_every_step is None:
        _saved = f"gets there after {rounds}, where K = 1 never does"
    else:
        _saved = f"gets there after {rounds} communications, where K = 1 needs {rounds_every_step}"
    _off, _off_every_step = end.w2(target), end_every_step.w2(target)
    _compared = (
        "as far as" if np.isclose(_off, _off_every_step, rtol=1e-6, atol=1e-9)
        else "farther than" if _off > _off_every_step else "nearer than"
    )
    _heterogeneity = theory.constants(problem, algorithm).heterogeneity
    measured = mo.md(f"""
    **Measured.** Heterogeneity (the largest client gradient at the common optimum) is {_heterogeneity:.3g}.
    With K = {local_steps.value} the average ends {_compared} with K = 1: W2 = {_off:.3g} from the posterior
    against {_off_every_step:.3g}. Its mean is off by {np.linalg.norm(end.mean - target.mean):.3g}, its
    variances are {np.array2string(end.variances / target.variances, precision=3)} times the posterior's.
    To W2 = {accuracy.value}, K = {local_steps.value} {_saved}.
    """)
    measured
    return (measured,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. Make both clients equally sure (ratio of curvatures 1) and put their optima far apart. How many local
       steps can one afford? Guess, then open the answer.
    2. Which K needs the fewest communications to the accuracy that is set above, if every K may choose its
       own step size? And which K needs the fewest gradients?
    """)
    return


@app.cell(hide_code=True)
def _(accuracy, distance, local_steps, problem, shared_noise, step_size):
    def answer_1():
        far = distance.stop / 2
        equal = fs.Quadratic([[1.0, 1.0], [1.0, 1.0]], [[-far, 0.0], [far, 0.0]])
        lines = []
        for name, clients in {"equal curvatures, far apart": equal, "the clients set above": problem}.items():
            one, many = (
                theory.stationary_law(clients, fs.FALD(step_size.value, k)).w2(clients.target())
                for k in (1, local_steps.stop)
            )
            same = "the same" if np.isclose(one, many, rtol=1e-6) else "not the same"
            lines.append(f"{name}: {one:.4g} with K = 1, {many:.4g} with K = {local_steps.stop}, **{same}**")
        entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.equal_curvature")
        return mo.md(f"""
        How far the average ends from the posterior, in W2:

        - {lines[0]}
        - {lines[1]}

        Where all curvatures are equal, a local step shrinks every client's distance to its own optimum by the
        same factor. Averaging now or later is then the same, wherever the optima are. It is *unequal
        curvature* that turns disagreement into bias.

        What this says of the paper's simulation ({entry.where}), `theory.errata()` derives:
        {entry.corrected}.
        """)

    def answer_2():
        tried = theory.sweep(
            problem,
            fs.FALD(0.01, shared_noise=shared_noise.value),
            local_steps=[1, 2, 5, 10, 20, 50],
            step_size=np.geomspace(1e-4, 0.2, 100),
            eps=accuracy.value,
        ).dropna(subset=["rounds"])
        fewest = tried.sort_values(["rounds", "step_size"]).groupby("local_steps").first()
        fewest = fewest[["step_size", "rounds", "gradients", "w2"]]
        best = {
            what: " and ".join(str(k) for k in fewest.index[fewest[what] == fewest[what].min()])
            for what in ("rounds", "gradients")
        }
        said = mo.md(f"""
        To W2 = {accuracy.value}, for the clients set above, K = {best["rounds"]} needs the fewest
        communications and K = {best["gradients"]} the fewest gradients, each K with the best of
        its step sizes. From the first row of the table to the last the best step size changes by a factor of
        {fewest["step_size"].iloc[-1] / fewest["step_size"].iloc[0]:.3g}, the rounds by a factor of
        {fewest["rounds"].iloc[-1] / fewest["rounds"].iloc[0]:.3g}. Is that what you expected of the picture
        above, where the step size was the same for all?
        """)
        return mo.vstack([said, fewest.round(5)])

    mo.accordion({"Answer 1": answer_1, "Answer 2": answer_2}, lazy=True)
    return answer_1, answer_2


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("deng2021")} Algorithm 2, Theorems 4.7 and 4.9 (`fa_ld.w2_bound`), section 6.

    - `python -m reproduce fa_ld_fig1a`: rounds against local steps
    - `python -m reproduce fa_ld_fig1b`: the distance by heterogeneity
    - `python -m reproduce fa_ld_fig1c`: by the shared part of the noise
    """)
    return


if __name__ == "__main__":
    app.run()
