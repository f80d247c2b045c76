"""An algorithm of your own: ten samplers, each written as one function of its round."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="An algorithm of your own")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, DOTTED, PURPLE, chart, line, rule, together, words

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS
    from fedsim.samplers import exp, grad, mean, noise, past, sqrt, weights


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # An algorithm of your own

    ## To read aloud

    A paper on sampling often has one line that matters: what a client does in a round. Mix with the
    neighbours, go downhill, add noise. Everything else in the paper follows from this line, and is much
    longer. So let us write the line, and ask the computer for the rest.

    In the next cell there are ten algorithms, each as a function of its round. Some are from the papers of
    this course, and some came after them. What is a point of every client is written as one letter. There is
    a word for the gradient, one for fresh noise, one for the average, and a matrix for talking to neighbours.
    That is nearly the whole language. You can change any line, and the pictures below follow.

    Nothing is simulated here. If the clients' functions are parabolas, a round of such an algorithm is a
    linear map with normal noise, so that its law can be computed, after any number of rounds, without
    drawing a single random number. The same formula tells how large the step may be before everything
    explodes, and which temperature the noise fits.

    Before you touch the controls, guess. Some of these algorithms remember what their neighbours said. Does
    that help in the end, or only on the way? One of them lets every client correct its own gradient by what
    the others saw. Will it care how far apart the clients are? And if you forget the factor two in front of
    the noise, as everybody does once: who will notice?
    """)
    return


@app.cell
def _():
    @fs.sampler(follows="components")
    def de_sgld(x, *, step_size, W):
        return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="components")
    def de_sghmc(x, v, *, step_size, friction, W):
        v = v - step_size * (friction * v + grad(x)) + sqrt(2 * friction * step_size) * noise()
        return W @ x + step_size * v, v

    @fs.sampler(follows="components")
    def extra(x, s, *, step_size, W):
        return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2

    @fs.sampler(follows="components")
    def diging(x, y, g, *, step_size, W):
        new = grad(x)
        y = W @ y + new - g
        return W @ x - step_size * y + sqrt(2 * step_size) * noise(), y, new

    @fs.sampler(follows="components")
    def baoab(x, v, *, step_size, friction, W):
        c = exp(-friction * step_size)
        v = v - step_size / 2 * grad(x)
        x = W @ x + step_size / 2 * v
        v = c * v + sqrt(1 - c * c) * noise()
        x = x + step_size / 2 * v
        return x, v - step_size / 2 * grad(x)

    return baoab, de_sghmc, de_sgld, diging, extra


@app.cell
def _():
    @fs.sampler
    def fa_ld(x, *, step_size, local_steps):
        for _ in range(local_steps):
            x = x - step_size * grad(x) + sqrt(2 * step_size / weights()) * noise()
        return mean(x)

    @fs.sampler
    def fa_hmc(x, *, step_size, leapfrog_steps, local_steps):
        for _ in range(local_steps):
            p = noise(common=True)
            for _ in range(leapfrog_steps):
                p = p - step_size / 2 * grad(x)
                x = x + step_size * p
                p = p - step_size / 2 * grad(x)
        return mean(x)

    @fs.sampler
    def scaffold(x, c, m, *, step_size, local_steps):
        y = x
        for _ in range(local_steps):
            y = y - step_size * (grad(y) - c + m) + sqrt(2 * step_size / weights()) * noise()
        new = c - m + (x - y) / (local_steps * step_size)
        return mean(y), new, mean(new)

    @fs.sampler(follows="global")
    def stale_sgld(x, *, step_size, age):
        return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="global")
    def stale_sghmc(x, q, *, step_size, friction, age):
        q = (1 - friction * step_size) * q - step_size * grad(past(x, age))
        q = q + sqrt(2 * friction * step_size) * noise()
        return x + step_size * q, q

    return fa_hmc, fa_ld, scaffold, stale_sghmc, stale_sgld


@app.cell
def _(baoab, de_sghmc, de_sgld, diging, extra, fa_hmc, fa_ld, scaffold, stale_sghmc, stale_sgld):
    def samplers_on(W, h):
        """All ten, each with the step that makes Langevin steps of size h on a component's scale."""
        one, root = h / len(W), np.sqrt(h)
        return {
            "DE-SGLD": de_sgld(step_size=h, W=W), "DE-SGHMC": de_sghmc(step_size=root, friction=2.0, W=W),
            "EXTRA": extra(step_size=h, W=W), "DIGing": diging(step_size=h, W=W),
            "BAOAB": baoab(step_size=root, friction=2.0, W=W), "FA-LD": fa_ld(step_size=one, local_steps=5),
            "FA-HMC": fa_hmc(step_size=np.sqrt(one), leapfrog_steps=3, local_steps=2),
            "SCAFFOLD": scaffold(step_size=one, local_steps=5),
            "stale SGLD": stale_sgld(step_size=one, age=3),
            "stale SGHMC": stale_sghmc(step_size=np.sqrt(one) / 2, friction=4.0, age=3),
        }

    return (samplers_on,)


@app.cell
def _(samplers_on):
    kind = mo.ui.dropdown(list(samplers_on(fs.network.ring(4), 0.01)), value="EXTRA", label="algorithm")
    n_agents = mo.ui.slider(4, 12, value=8, show_value=True, label="clients, on a ring")
    spread = mo.ui.slider(0.5, 4.0, 0.5, value=2.0, show_value=True, label="distance of the outer optima")
    step_size = mo.ui.slider(
        steps=[0.005, 0.01, 0.02, 0.05, 0.1], value=0.02, show_value=True, label="step size"
    )
    mo.hstack([mo.vstack([kind, step_size]), mo.vstack([n_agents, spread])], wrap=True)
    return kind, n_agents, spread, step_size


@app.cell
def _(n_agents, samplers_on, spread, step_size):
    place = np.linspace(-1.0, 1.0, n_agents.value)
    curvatures = 1.0 + 0.5 * np.sin(np.arange(n_agents.value))

    def problem_of(spread):
        return fs.Quadratic.from_components(curvatures, 1.0 + spread / 2 * place[:, None])

    problem = problem_of(spread.value)
    algorithms = samplers_on(fs.network.ring(n_agents.value), step_size.value)
    return algorithms, problem, problem_of


@app.cell
def _(algorithms, problem):
    def end_of(one, problem):
        """How far from the posterior it is in the end."""
        return theory.stationary_law(problem, one).w2(problem.target())

    ends = {name: end_of(one, problem) for name, one in algorithms.items()}
    return end_of, ends


@app.cell
def _(algorithms, ends, kind, problem):
    _rounds = np.unique(np.geomspace(1, 300, 60).astype(int))
    law = theory.exact_law(problem, algorithms[kind.value], 300, record=_rounds)
    worst = max((one.w2()[-1], number) for number, one in enumerate(law.clients))[1] if law.clients else None
    _names, _ranks = sorted(ends, key=ends.get), np.arange(1.0, len(ends) + 1)
    _values = np.array([ends[name] for name in _names])
    picture = together(
        chart(
            line("average of the clients", law.rounds, law.w2(), COLOURS[0]),
            *([] if worst is None else [
                line(f"worst client ({worst})", law.rounds, law.clients[worst].w2(), COLOURS[1], dash=DASHED)
            ]),
            rule("average, in the end", PURPLE, y=ends[kind.value], dash=DOTTED),
            x="rounds", y="W2 to the posterior", log="y", title=f"{kind.value}: exact law, round by round",
            width=290, height=330,
        ),
        chart(
            line("average of the clients", _values, _ranks, COLOURS[0], joined=False),
            words(_names, _values, _ranks, bold=[kind.value]),
            x="W2 to the posterior in the end", y="rank, the nearest first", log="x",
            title="all ten, at the same size of step", width=290, height=330,
            x_domain=(_values.min() / 3, 3 * _values.max()), y_domain=(0.5, len(_names) + 1),
        ),
    )
    picture
    return (picture,)


@app.cell(hide_code=True)
def _(algorithms, ends, kind, problem):
    _order = sorted(ends, key=ends.get)
    _rank = _order.index(kind.value)
    _limit = algorithms[kind.value].stability(problem).max_step_size / algorithms[kind.value].step_size
    _costs = algorithms[kind.value].costs(problem, 1)
    _said = "the nearest of all" if _rank == 0 else f"behind {', '.join(_order[:_rank])}"
    measured = mo.md(f"""
    **Measured.** The step of {kind.value} could be {_limit:.3g} times as large before it explodes, by its
    formula. In the end it is at W2 = {ends[kind.value]:.3g} from the posterior, {_said}. A round has
    {_costs["gradient_evaluations"]:.0f} gradients and sends {_costs["floats_sent"]:.0f} numbers. Noise and
    gradients fit temperature {fs.explain(problem, algorithms[kind.value])["temperature"].partition(",")[0]}.
    """)
    measured
    return (measured,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. In the end, which of the ten do not care how far apart the clients' optima are?
    2. Forget the factor two in the noise of DE-SGLD. Who notices, and what is said?
    3. How many rounds does the chosen algorithm need at its best step, to come as near as DE-SGLD comes here?
    """)
    return


@app.cell(hide_code=True)
def _(algorithms, end_of, ends, kind, n_agents, problem, problem_of, spread, step_size):
    def answer_1():
        apart = problem_of(2 * spread.value)
        new = {name: end_of(one, apart) for name, one in algorithms.items()}
        free = [name for name in new if np.isclose(new[name], ends[name], rtol=1e-6)]
        moved = [name for name in algorithms if name not in free]
        return mo.md(f"""
        With twice the distance, the distance in the end stays for: {", ".join(free) or "none"}. It changes
        for: {", ".join(moved) or "none"}. No theorem of the papers here speaks of the first; that of DE-SGLD
        has a term for the clients' gradients (`de_sgld.w2_bound`).
        """)

    def answer_2():
        @fs.sampler(follows="components")
        def cold(x, *, step_size, W, temperature=0.5):  # it says so: else a warning would
            return W @ x - step_size * grad(x) + sqrt(step_size) * noise()

        one = cold(step_size=step_size.value, W=fs.network.ring(n_agents.value))
        told = fs.explain(problem, one)["temperature"]
        width = theory.stationary_law(problem, one).cov[0, 0] / problem.target().cov[0, 0]
        return mo.md(f"""
        The formula itself: it fits temperature {told}. No picture need be drawn; the variance in the end is
        {width:.3g} times that of the posterior. A simulation with few samples may hide it.
        """)

    def answer_3():
        eps = ends["DE-SGLD"]
        best = theory.tuning.best_step_size(problem, algorithms[kind.value], eps, n_grid=9, n_refine=1)
        found = f"{best.n_rounds} rounds at step {best.step_size:.3g}" if best else "no step that does"
        return mo.md(f"""
        To come to W2 = {eps:.3g}, {kind.value} has {found}. With the step above, DE-SGLD comes there in the
        end.
        """)

    mo.accordion({"Answer 1": answer_1, "Answer 2": answer_2, "Answer 3": answer_3}, lazy=True)
    return answer_1, answer_2, answer_3


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("gurbuzbalaban2021")} DE-SGLD is the line that the others improve. The notation is on the
    page `docs/guide/own_sampler.md`, and the shipped algorithms in it on `docs/guide/equations.md`.

    - `python -m reproduce de_fig2`: average and agents of DE-SGLD on three networks
    """)
    return


if __name__ == "__main__":
    app.run()
