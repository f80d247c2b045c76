"""Gossip: what agents without a server lose by talking to their neighbours only (DE-SGLD, DE-SGHMC)."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Gossip on networks")

with app.setup:
    import marimo as mo
    import numpy as np
    from charts import DASHED, DOTTED, chart, line, network, together, words

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # Gossip on networks

    ## To read aloud

    Now there is no server. Every agent has some of the data, and knows a few neighbours. In each round it
    replaces its point by an average of its own and its neighbours' points, takes a step downhill on its own
    data, and adds a push of random noise. This is decentralized Langevin dynamics. With a momentum it
    becomes the Hamiltonian form: part of the last movement is kept, so that an agent glides.

    Whose samples shall we look at? There are two answers, and they differ. One is the average over all
    agents, which nobody holds, but which one can compute afterwards. The other is a single agent: what you
    get if you ask only one of them. Rumours travel slowly along a line and fast in a crowd. So a single agent
    that is far from the others knows mostly its own data.

    How fast rumours travel is one number of the network, the spectral gap: it is one where everybody talks to
    everybody, and zero where the network falls apart. In the picture each dot is an agent, and the darker it
    is, the farther its samples are from the posterior. The curves show the same round by round. They are
    exact laws, not estimates.

    Before you touch the controls, guess. Take a ring, then a path, then a star. In which of them is the
    average best? In which is the worst agent worst, and where in the network does it sit? If we halve the
    step size, does the quarrel among agents shrink or the error of the average, or both? And what happens if
    nobody talks to anybody at all: is then the average of all agents still a sample of the posterior?
    """)
    return


@app.cell
def _():
    networks = {
        "complete": fs.network.complete, "star": fs.network.star, "ring": fs.network.ring,
        "path": fs.network.path, "nobody talks": fs.network.disconnected,
    }
    return (networks,)


@app.cell
def _(networks):
    kind = mo.ui.dropdown(list(networks), value="ring", label="network")
    n_agents = mo.ui.slider(3, 20, value=12, show_value=True, label="agents")
    spread = mo.ui.slider(0.0, 4.0, 0.5, value=2.0, show_value=True, label="distance of the outer optima")
    unequal = mo.ui.slider(0.0, 0.9, 0.1, value=0.5, show_value=True, label="inequality of curvatures")
    step_size = mo.ui.slider(
        steps=[0.005, 0.01, 0.02, 0.05, 0.1], value=0.05, show_value=True, label="step size"
    )
    kept = mo.ui.slider(0.0, 0.9, 0.1, value=0.0, show_value=True, label="momentum kept in a round")
    mo.hstack([mo.vstack([kind, n_agents, step_size]), mo.vstack([spread, unequal, kept])], wrap=True)
    return kept, kind, n_agents, spread, step_size, unequal


@app.cell
def _(kept, n_agents, spread, step_size, unequal):
    place = np.linspace(-1.0, 1.0, n_agents.value)  # neighbours are alike, as along a river
    problem = fs.Quadratic.from_components(
        hessians=1.0 + unequal.value * place,
        minimizers=spread.value / 2 * np.column_stack([place, np.abs(place)]),
    )
    settled = 100_000  # rounds after which no digit changes, wherever the controls are

    def algorithm_on(mixing, size=step_size.value):
        """With no momentum kept, DE-SGHMC of step sqrt(h) is DE-SGLD of step h."""
        if kept.value == 0.0:
            return fs.DESGLD(size, mixing)
        step = np.sqrt(size)
        return fs.DESGHMC(step, friction=(1 - kept.value) / step, mixing=mixing)

    def ends_of(algorithm):
        """How far from the posterior the average is in the end, and every agent."""
        law = theory.exact_law(problem, algorithm, settled, record=[settled])
        return law.w2()[-1], np.array([one.w2()[-1] for one in law.clients])

    return algorithm_on, ends_of, problem


@app.cell
def _(algorithm_on, ends_of, kind, n_agents, networks, problem):
    mixing = networks[kind.value](n_agents.value)
    algorithm = algorithm_on(mixing)
    law = theory.exact_law(problem, algorithm, 400, record=np.unique(np.geomspace(1, 400, 32).astype(int)))
    end = ends_of(algorithm)[1]
    worst, best = int(end.argmax()), int(end.argmin())
    return algorithm, best, end, law, mixing, worst


@app.cell
def _(algorithm_on, best, end, ends_of, kind, law, mixing, n_agents, networks, worst):
    def row_of(name):
        """Of a network: its gap, and how far the average and the worst agent are in the end."""
        mixing = networks[name](n_agents.value)
        average, agents = ends_of(algorithm_on(mixing))
        return {"network": name, "gap": fs.network.spectral_gap(mixing), "average": average,
                "worst agent": agents.max()}

    table = [row_of(name) for name in networks]
    by_name = {row["network"]: row for row in table}
    _gaps = [max(row["gap"], 1e-3) for row in table]  # zero has no logarithm
    _worst = [row["worst agent"] for row in table]
    picture = together(
        network(mixing, end, told="W2 in the end", marked={best: COLOURS[2], worst: COLOURS[1]}),
        chart(
            line("average of all agents", law.rounds, law.w2(), COLOURS[0]),
            line(f"best agent ({best})", law.rounds, law.clients[best].w2(), COLOURS[2], dash=DOTTED),
            line(f"worst agent ({worst})", law.rounds, law.clients[worst].w2(), COLOURS[1], dash=DASHED),
            x="rounds", y="W2 to the posterior", log="y", title="exact laws, round by round",
        ),
        chart(
            line("average", _gaps, [row["average"] for row in table], COLOURS[0], joined=False),
            line("worst agent", _gaps, _worst, COLOURS[1], joined=False),
            words([row["network"] for row in table], _gaps, _worst, bold=[kind.value]),
            x="spectral gap (zero: at the left)", y="W2 in the end", log="xy", title="other networks",
        ),
    )
    picture
    return by_name, picture, table


@app.cell(hide_code=True)
def _(algorithm, best, by_name, end, kind, problem, worst):
    _row, _crowd = by_name[kind.value], by_name["complete"]
    _times = _row["average"] / _crowd["average"]
    _cost = "no farther than" if _times <= 1 + 1e-6 else f"{_times:.3g} times as far as"
    _spread = (
        "All agents are equally far" if np.isclose(end[worst], end[best], rtol=1e-6)
        else f"Agent {best} is nearest with {end[best]:.3g}, agent {worst} farthest with {end[worst]:.3g}"
    )
    _order = "nearer than every agent" if _row["average"] < end[best] else "not nearer than every agent"
    _stability = algorithm.stability(problem)
    measured = mo.md(f"""
    **Measured.** The spectral gap is {_row["gap"]:.3g}. In the end the average is at W2 =
    {_row["average"]:.3g} from the posterior, {_order}, and {_cost} where everybody talks to everybody.
    {_spread}. The step could be at most {_stability.max_step_size / algorithm.step_size:.3g} times as large
    before the agents explode.
    """)
    measured
    return (measured,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercises

    1. Does the spectral gap alone tell how good a network is? Look for two networks of which the one with the
       larger gap is worse. The number of agents matters.
    2. Let nobody talk to anybody. Is the average of all agents still near the posterior? Guess for agents
       with equal curvatures first, then for unequal ones.
    3. Halve the step size. What shrinks: the distance of the average, or that of the worst agent?
    """)
    return


@app.cell(hide_code=True)
def _(algorithm_on, by_name, end, ends_of, kind, mixing, n_agents, problem, step_size, table):
    def answer_1():
        pairs = {
            what: [
                f"{one['network']} ({one['gap']:.2g}) before {other['network']} ({other['gap']:.2g})"
                for one in table for other in table
                if one["gap"] > other["gap"] * (1 + 1e-9) and one[what] > other[what] * (1 + 1e-6)
            ]
            for what in ("average", "worst agent")
        }
        return mo.md(f"""
        Pairs of networks of which the first has the larger gap and is all the same farther from the
        posterior:

        - by the average: {"; ".join(pairs["average"]) or "none"}
        - by the worst agent: {"; ".join(pairs["worst agent"]) or "none"}

        Theorem 1 bounds both by the gap (`de_sgld.w2_bound`, `de_sgld.w2_clients_bound`), and a bound may be
        larger for a network that does well. The exact law also sees who sits where.
        """)

    def answer_2():
        silent = algorithm_on(fs.network.disconnected(n_agents.value))
        equal = fs.Quadratic.from_components(np.ones(n_agents.value), problem.minimizers)
        talking = algorithm_on(fs.network.complete(n_agents.value))
        alone, crowd = (theory.stationary_law(equal, one).w2(equal.target()) for one in (silent, talking))
        same = "the same" if np.isclose(alone, crowd, rtol=1e-6) else "not the same"
        unequal, target = theory.stationary_law(problem, silent), problem.target()
        return mo.md(f"""
        With equal curvatures the average of silent agents ends at W2 = {alone:.3g}, and that of agents who
        all talk at {crowd:.3g}: {same}. With the curvatures set above, silent agents' average ends at
        {unequal.w2(target):.3g}, its mean off by {np.linalg.norm(unequal.mean - target.mean):.3g}.

        The mean of all optima is the common optimum where all curvatures are equal, and in general not
        otherwise: talking is what weighs an agent by how sure it is. No theorem promises anything here: a
        disconnected network is outside the hypotheses of Theorems 1 and 11.
        """)

    def answer_3():
        average, each = ends_of(algorithm_on(mixing, step_size.value / 2))
        average /= by_name[kind.value]["average"]
        return mo.md(f"""
        On the {kind.value} network, half the step size multiplies the distance of the average by
        {average:.3g}, and that of the worst agent by {each.max() / end.max():.3g}. A bias of first order in
        the step size would be multiplied by {1 / 2}. The noise that an agent has for itself goes with the
        root, {np.sqrt(1 / 2):.3g}, where it is wider than the posterior. Which of them do you see?
        """)

    mo.accordion({"Answer 1": answer_1, "Answer 2": answer_2, "Answer 3": answer_3}, lazy=True)
    return answer_1, answer_2, answer_3


@app.cell(hide_code=True)
def _():
    mo.md(rf"""
    ## Where it stands

    {theory.cite("gurbuzbalaban2021")} Theorem 1 and Remark 3 (DE-SGLD), Theorem 11 (DE-SGHMC), section 5.

    - `python -m reproduce de_fig2`: average and agents on three networks; `python -m reproduce de_fig3` with
      momentum
    - `python -m reproduce de_spectral_gap`: the distance in the end against the spectral gap, more networks
    """)
    return


if __name__ == "__main__":
    app.run()
