"""Gossip: what agents without a server lose by talking to their neighbours only (DE-SGLD, DE-SGHMC)."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Gossip on networks")

with app.setup:
    import marimo as mo
    import numpy as np
    from matplotlib.figure import Figure

    import fedsim as fs
    import theory
    from fedsim.plot import COLOURS, GREY, exact


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
    network = mo.ui.dropdown(list(networks), value="ring", label="network")
    n_agents = mo.ui.slider(3, 20, value=16, show_value=True, label="agents")
    spread = mo.ui.slider(0.0, 4.0, 0.5, value=2.0, show_value=True, label="distance of the outer optima")
    unequal = mo.ui.slider(0.0, 0.9, 0.1, value=0.5, show_value=True, label="inequality of curvatures")
    step_size = mo.ui.slider(
        steps=[0.005, 0.01, 0.02, 0.05, 0.1], value=0.05, show_value=True, label="step size"
    )
    kept = mo.ui.slider(0.0, 0.9, 0.1, value=0.0, show_value=True, label="momentum kept in a round")
    mo.hstack([mo.vstack([network, n_agents, step_size]), mo.vstack([spread, unequal, kept])])
    return kept, n_agents, network, spread, step_size, unequal


@app.cell
def _(n_agents, spread, unequal):
    place = np.linspace(-1.0, 1.0, n_agents.value)  # neighbours are alike, as along a river
    problem = fs.Quadratic.from_components(
        hessians=1.0 + unequal.value * place,
        minimizers=spread.value / 2 * np.column_stack([place, np.abs(place)]),
    )
    target = problem.target()
    return problem, target


@app.cell
def _(kept, step_size):
    def algorithm_on(mixing, size=step_size.value):
        """With no momentum kept, DE-SGHMC of step sqrt(h) is DE-SGLD of step h."""
        if kept.value == 0.0:
            return fs.DESGLD(size, mixing)
        step = np.sqrt(size)
        return fs.DESGHMC(step, friction=(1 - kept.value) / step, mixing=mixing)

    return (algorithm_on,)


@app.cell
def _(algorithm_on, n_agents, network, networks, problem, target):
    mixing = networks[network.value](n_agents.value)
    algorithm = algorithm_on(mixing)
    law = theory.exact_law(problem, algorithm, n_rounds=400, record=np.geomspace(1, 400, 60).astype(int))
    end = np.array([
        theory.stationary_law(problem, algorithm, client=one).w2(target) for one in range(n_agents.value)
    ])
    worst, best = int(end.argmax()), int(end.argmin())
    return algorithm, best, end, law, mixing, worst


@app.cell
def _(best, end, law, mixing, n_agents, worst):
    picture = Figure(figsize=(10.5, 4.4), layout="constrained")
    _left, _right = picture.subplots(1, 2)
    _angle = 2 * np.pi * np.arange(n_agents.value) / n_agents.value
    _x, _y = np.sin(_angle), np.cos(_angle)
    for _one, _other in zip(*np.nonzero(np.triu(mixing, 1)), strict=True):
        _left.plot(_x[[_one, _other]], _y[[_one, _other]], color=GREY, linewidth=0.7, zorder=1)
    _dots = _left.scatter(_x, _y, s=160, c=end, vmin=end.min() / 2, cmap="Blues", edgecolors="#000000",
                          zorder=2)
    _left.annotate(f"worst: agent {worst}", (_x[worst], _y[worst]), (0.0, 0.0), ha="center",
                   arrowprops={"arrowstyle": "->"}, bbox={"facecolor": "#FFFFFF", "linewidth": 0})
    _left.set(aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xticks=[], yticks=[])
    picture.colorbar(_dots, ax=_left, label="$W_2$ of an agent in the end")
    exact(_right, law.rounds, law.w2(), COLOURS[0], "average of all agents")
    exact(_right, law.rounds, law.clients[best].w2(), COLOURS[2], f"best agent ({best})")
    exact(_right, law.rounds, law.clients[worst].w2(), COLOURS[1], f"worst agent ({worst})")
    _right.set(yscale="log", xlabel="rounds", ylabel="$W_2$ to the posterior")
    _right.legend(fontsize=9, frameon=False)
    picture
    return (picture,)


@app.cell
def _(algorithm_on, n_agents, networks, problem, target):
    def ends(name):
        """Of a network: its gap, and how far the average and the worst agent are in the end."""
        mixing = networks[name](n_agents.value)
        algorithm = algorithm_on(mixing)
        agents = [theory.stationary_law(problem, algorithm, client=one) for one in range(n_agents.value)]
        return {
            "network": name,
            "gap": fs.network.spectral_gap(mixing),
            "average": theory.stationary_law(problem, algorithm).w2(target),
            "worst agent": max(one.w2(target) for one in agents),
        }

    table = [ends(name) for name in networks]
    by_name = {row["network"]: row for row in table}
    return by_name, table


@app.cell
def _(network, table):
    second_picture = Figure(figsize=(7.0, 4.2), layout="constrained")
    _axes = second_picture.subplots()
    _gaps = [max(row["gap"], 1e-3) for row in table]  # zero has no logarithm
    for _what, _colour in (("average", COLOURS[0]), ("worst agent", COLOURS[1])):
        _axes.plot(_gaps, [row[_what] for row in table], "o", color=_colour, label=_what)
    for _gap, _row in zip(_gaps, table, strict=True):
        _weight = "bold" if _row["network"] == network.value else "normal"
        _axes.annotate(_row["network"], (_gap, _row["worst agent"]), (0, 7), textcoords="offset points",
                       ha="center", fontsize=9, weight=_weight)
    _axes.set(xscale="log", yscale="log", xlabel="spectral gap (zero: at the left)",
              ylabel="$W_2$ in the end")
    _axes.margins(0.15)
    _axes.legend(fontsize=9, frameon=False)
    second_picture
    return (second_picture,)


@app.cell(hide_code=True)
def _(algorithm, best, by_name, end, network, problem, worst):
    _row, _crowd = by_name[network.value], by_name["complete"]
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
def _(table):
    _pairs = {
        what: [
            f"{one['network']} ({one['gap']:.2g}) before {other['network']} ({other['gap']:.2g})"
            for one in table for other in table
            if one["gap"] > other["gap"] * (1 + 1e-9) and one[what] > other[what] * (1 + 1e-6)
        ]
        for what in ("average", "worst agent")
    }
    answer_1 = mo.md(f"""
    Pairs of networks of which the first has the larger gap and is all the same farther from the posterior:

    - by the average: {"; ".join(_pairs["average"]) or "none"}
    - by the worst agent: {"; ".join(_pairs["worst agent"]) or "none"}

    Theorem 1 bounds both by the gap (`de_sgld.w2_bound`, `de_sgld.w2_clients_bound`), and a bound may be
    larger for a network that does well. The exact law also sees who sits where.
    """)
    mo.accordion({"Answer 1": answer_1})
    return (answer_1,)


@app.cell(hide_code=True)
def _(algorithm_on, n_agents, problem, target):
    _silent = algorithm_on(fs.network.disconnected(n_agents.value))
    _equal = fs.Quadratic.from_components(np.ones(n_agents.value), problem.minimizers)
    _talking = algorithm_on(fs.network.complete(n_agents.value))
    _alone, _crowd = (theory.stationary_law(_equal, one).w2(_equal.target()) for one in (_silent, _talking))
    _same = "the same" if np.isclose(_alone, _crowd, rtol=1e-6) else "not the same"
    _unequal = theory.stationary_law(problem, _silent)
    answer_2 = mo.md(f"""
    With equal curvatures the average of silent agents ends at W2 = {_alone:.3g}, and that of agents who all
    talk at {_crowd:.3g}: {_same}. With the curvatures set above, silent agents' average ends at
    {_unequal.w2(target):.3g}, its mean off by {np.linalg.norm(_unequal.mean - target.mean):.3g}.

    The mean of all optima is the common optimum where all curvatures are equal, and in general not
    otherwise: talking is what weighs an agent by how sure it is. No theorem promises anything here: a
    disconnected network is outside the hypotheses of Theorems 1 and 11.
    """)
    mo.accordion({"Answer 2": answer_2})
    return (answer_2,)


@app.cell(hide_code=True)
def _(algorithm_on, end, mixing, n_agents, network, problem, step_size, target, by_name):
    _half = algorithm_on(mixing, step_size.value / 2)
    _average = theory.stationary_law(problem, _half).w2(target) / by_name[network.value]["average"]
    _agents = [theory.stationary_law(problem, _half, client=one).w2(target) for one in range(n_agents.value)]
    answer_3 = mo.md(f"""
    On the {network.value} network, half the step size multiplies the distance of the average by
    {_average:.3g}, and that of the worst agent by {max(_agents) / end.max():.3g}. A bias of first order in
    the step size would be multiplied by {1 / 2}. The noise that an agent has for itself goes with the root,
    {np.sqrt(1 / 2):.3g}, where it is wider than the posterior. Which of them do you see?
    """)
    mo.accordion({"Answer 3": answer_3})
    return (answer_3,)


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
