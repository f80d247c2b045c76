"use strict";
// The page on gossip: DE-SGLD with one-dimensional quadratic components. No document in here.

const Gossip = (() => {
  const node = typeof module !== "undefined";
  const law = node ? require("./laws.js") : Laws;
  const plots = node ? require("./plots.js") : Plots;
  const { show, count } = plots;
  const START = 3;
  const LAST = 300;

  const choices = [{
    name: "graph", label: "graph", options: ["path", "ring", "star", "grid", "complete"], value: "ring",
  }];
  const sliders = [
    { name: "stepSize", label: "step size", values: plots.nice(0.005, 2.5), value: 0.05 },
    { name: "agents", label: "agents N", values: plots.range(3, 12), value: 8 },
    { name: "distance", label: "heterogeneity: distance of the outermost minimizers", values: plots.range(0, 8, 0.5), value: 4 },
    { name: "ratio", label: "ratio of the two curvatures", values: [1, 1.2, 1.5, 2, 3, 4, 5, 7, 10], value: 1 },
    { name: "rounds", label: "iterations", values: plots.range(0, LAST), value: 40 },
  ];

  function model(settings) {
    const all = law.gossip({ ...settings, rounds: LAST, start: START });
    const n = Math.min(settings.rounds, all.laws.w2.length - 1);
    const now = {
      mean: all.laws.mean[n], variance: all.laws.variance[n], w2: all.laws.w2[n],
      agentW2: all.laws.agentW2[n], agents: all.laws.agents[n],
    };
    return { ...all, n, now };
  }

  function sentence(settings, m) {
    const gap = `The ${settings.graph} of ${settings.agents} agents has spectral gap ${show(m.net.gap)}`;
    if (!m.stable) {
      return `Unstable: the step size ${show(settings.stepSize)} is not below the limit ${show(m.limit, 4)} of this graph. The agents drive each other apart and never settle. ${
        m.n < settings.rounds ? `Iteration ${m.n} is the last one in range, and is shown. ` : ""}${gap}.`;
    }
    const [average, agents] = [m.stationary.w2, m.stationaryAgentW2];
    const how = agents > 1.02 * average ? `the agents stay ${show(agents / average)} times as far from it as their average`
      : "the agents are about as near as their average";
    return `${gap}. After ${count(m.n, "iteration")} the average is at distance W2 = ${show(m.now.w2)} from the target, the agents are at ${
      show(m.now.agentW2)} in the mean. At the end these are ${show(average)} and ${show(agents)}: ${how}.`;
  }

  function numbers(settings, m) {
    const end = m.stationary;
    return [
      ["spectral gap", show(m.net.gap, 4)],
      ["second eigenvalue", show(m.net.second, 4)],
      [`W2 of the average after ${m.n}`, show(m.now.w2, 4)],
      ["W2 of the average, at the end", end ? show(end.w2, 4) : "none: unstable"],
      [`mean W2 of agents after ${m.n}`, show(m.now.agentW2, 4)],
      ["mean W2 of agents, at the end", end ? show(m.stationaryAgentW2, 4) : "none: unstable"],
      ["bias of the average's mean, at the end", end ? show(end.mean - m.target.mean, 4) : "none: unstable"],
      ["stability", `${m.stable ? "stable" : "unstable"}, limit ${show(m.limit, 4)}`],
    ];
  }

  function isPath(graph, agents) {
    return graph === "path" || (graph === "grid" && law.gridSides(agents)[0] === 1);
  }

  function places(graph, agents) {
    const all = [...Array(agents).keys()];
    const [rows, columns] = law.gridSides(agents);
    if (isPath(graph, agents)) return all.map((i) => ({ x: i / (agents - 1), y: 0.4 + 0.2 * (i % 2) }));
    if (graph === "grid") {
      const step = 1 / Math.max(rows - 1, columns - 1, 1);
      return all.map((i) => ({
        x: 0.5 + ((i % columns) - (columns - 1) / 2) * step,
        y: 0.5 + (Math.floor(i / columns) - (rows - 1) / 2) * step,
      }));
    }
    const around = graph === "star" ? agents - 1 : agents;
    const circle = (i) => ({
      x: 0.5 + 0.5 * Math.sin(2 * Math.PI * i / around), y: 0.5 - 0.5 * Math.cos(2 * Math.PI * i / around),
    });
    return graph === "star" ? all.map((i) => (i ? circle(i - 1) : { x: 0.5, y: 0.5 })) : all.map(circle);
  }

  function network(settings, m) {
    const flattest = Math.min(...m.curvatures);
    return {
      id: "network", stretched: isPath(settings.graph, settings.agents), title: `The ${settings.graph}: spectral gap ${show(m.net.gap)} (wider links weigh more${
        settings.ratio > 1 ? "; filled agents are the steep ones" : ""})`,
      nodes: places(settings.graph, settings.agents).map((place, i) => ({
        ...place, label: i + 1, steep: m.curvatures[i] > flattest,
      })),
      links: m.net.links.map(([from, to]) => ({ from, to, weight: m.net.W[from][to] })),
    };
  }

  function densities(m) {
    const [from, to] = [-4, 4];
    const least = Math.sqrt(m.target.variance * 2 * Math.PI);
    return {
      id: "densities", title: `Density of the target, of the average and of every agent after ${count(m.n, "iteration")}`,
      x: { label: "x", from, to }, y: { label: "density", from: 0, to: 1.4 / least },
      items: [
        plots.density(m.target, from, to, "target", "target", true),
        ...m.now.agents.map((one, i) => plots.density(one, from, to, "agent", i ? "" : "agents")),
        plots.density(m.now, from, to, "law", "average of the agents"),
        ...m.minimizers.map((x, i) => ({
          kind: "mark", shape: "triangle", x, y: 0, style: "soft", name: i ? "" : "the agents' minimizers",
        })),
      ],
    };
  }

  function distances(m) {
    const { w2, agentW2 } = m.laws;
    const rounds = w2.map((_, n) => n);
    const ends = m.stationary ? [m.stationary.w2, m.stationaryAgentW2] : [];
    return {
      id: "distances", title: "W2 to the target against iterations",
      x: { label: "iterations", from: 0, to: LAST }, y: plots.decades("W2", [...w2, ...agentW2, ...ends], 1e-2, 10),
      items: [
        { kind: "line", xs: rounds, ys: w2, style: "law", name: "the average" },
        { kind: "line", xs: rounds, ys: agentW2, style: "agents", name: "the agents, in the mean" },
        ...ends.map((y, i) => ({ kind: "level", y, style: "end", name: i ? "" : "where they end" })),
        { kind: "mark", shape: "square", x: m.n, y: m.now.agentW2, style: "agents", name: "agents now" },
        { kind: "mark", shape: "circle", x: m.n, y: m.now.w2, style: "law", name: "average now" },
        ...(m.stable ? [] : [{ kind: "text", x: LAST / 2, y: 0.02, text: "unstable" }]),
      ],
    };
  }

  function python(settings, m) {
    const { agents, graph } = settings;
    const size = graph === "grid" ? law.gridSides(agents).join(", ") : agents;
    const lines = [
      "import fedsim as fs, theory", "",
      `n, distance, ratio = ${agents}, ${settings.distance}, ${settings.ratio}`,
      "curvatures = [2 / (1 + ratio) if 2 * i < n else 2 * ratio / (1 + ratio) for i in range(n)]",
      "minimizers = [[distance * (i / (n - 1) - 0.5)] for i in range(n)]",
      "problem = fs.Quadratic.from_components(curvatures, minimizers)",
      `mixing = fs.network.${graph}(${size})`,
      `algorithm = fs.DESGLD(step_size=${settings.stepSize}, mixing=mixing)`,
      `law = theory.exact_law(problem, algorithm, n_rounds=${m.n}, start=[${START}]${m.stable ? "" : ", allow_unstable=True"})`,
      "print(law.w2()[-1], sum(agent.w2()[-1] for agent in law.clients) / n)",
      "print(fs.network.spectral_gap(mixing), algorithm.stability(problem))",
    ];
    if (m.stable) {
      lines.push("end = theory.stationary_law(problem, algorithm)", "print(end.w2(problem.target()), end.mean, end.cov)");
    }
    return lines.join("\n");
  }

  return {
    choices, sliders, model, sentence, numbers, python,
    pictures: (settings, m) => [network(settings, m), distances(m), densities(m)],
  };
})();
if (typeof module !== "undefined") module.exports = Gossip;
else Page.start(Gossip);
