"use strict";
// The page on stale gradients: SGLD with a constant staleness on a one-dimensional quadratic. No document in here.

const Staleness = (() => {
  const node = typeof module !== "undefined";
  const law = node ? require("./laws.js") : Laws;
  const plots = node ? require("./plots.js") : Plots;
  const { show, count } = plots;
  const START = 4;
  const LAST = 400;
  const OLDEST = 40;
  const STEPS = plots.nice(0.005, 4);

  const sliders = [
    { name: "stepSize", label: "step size h", values: STEPS, value: 0.1 },
    { name: "staleness", label: "staleness tau (age of the gradient)", values: plots.range(0, OLDEST), value: 8 },
    { name: "curvature", label: "curvature a", values: [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4], value: 1 },
    { name: "rounds", label: "iterations", values: plots.range(0, LAST), value: 60 },
  ];

  function model(settings) {
    const all = law.staleness({ ...settings, rounds: LAST, start: START });
    const n = Math.min(settings.rounds, all.laws.w2.length - 1);
    const now = { mean: all.laws.mean[n], variance: all.laws.variance[n], w2: all.laws.w2[n] };
    return { ...all, n, now };
  }

  function sentence(settings, m) {
    const { stepSize, staleness } = settings;
    if (!m.stable) {
      return `Unstable: with gradients that are ${count(staleness, "iteration")} old the step size ${show(stepSize)} is not below the limit ${
        show(m.limit, 4)}. The law ${staleness ? "swings with growing size" : "grows"} and never settles.${
        m.n < settings.rounds ? ` Iteration ${m.n} is the last one in range, and is shown.` : ""}`;
    }
    const ratio = m.stationary.variance / m.target.variance;
    const share = stepSize / m.limit;
    const where = share > 0.9 ? "at the edge of the cliff" : share > 0.5 ? "on the slope to the cliff" : "far from the cliff";
    return `With gradients that are ${count(staleness, "iteration")} old the step size ${show(stepSize)} is ${
      show(100 * share)} % of the limit, ${where}: the stationary variance is ${show(ratio)} times the target's. After ${
      count(m.n, "iteration")} W2 = ${show(m.now.w2)}; it ends at ${show(m.stationary.w2)}.`;
  }

  function numbers(settings, m) {
    const end = m.stationary;
    return [
      [`W2 after ${count(m.n, "iteration")}`, show(m.now.w2, 4)],
      ["W2 at the end (floor)", end ? show(end.w2, 4) : "none: unstable"],
      ["bias of the mean, now", show(m.now.mean - m.target.mean, 4)],
      ["variance / target's, now", show(m.now.variance / m.target.variance, 4)],
      ["variance / target's, at the end", end ? show(end.variance / m.target.variance, 4) : "none: unstable"],
      ["stability", `${m.stable ? "stable" : "unstable"}, limit ${show(m.limit, 4)}`],
      ["limit without staleness", show(law.stalenessLimit(0, settings.curvature), 4)],
    ];
  }

  function limits(settings, m) {
    const taus = plots.range(0, OLDEST);
    return {
      id: "limits", title: "Largest stable step size against staleness",
      x: { label: "staleness", from: 0, to: OLDEST }, y: { label: "step size h", from: 0.005, to: 10, log: true },
      items: [
        {
          kind: "line", xs: taus, ys: taus.map((tau) => law.stalenessLimit(tau, settings.curvature)), style: "end",
          name: "limit of the step size h",
        },
        { kind: "text", x: OLDEST * 0.75, y: 1.5, text: "unstable" },
        { kind: "text", x: OLDEST * 0.2, y: 0.012, text: "stable" },
        {
          kind: "mark", shape: m.stable ? "circle" : "square", x: settings.staleness, y: settings.stepSize,
          style: m.stable ? "law" : "alarm", name: `this step size, ${m.stable ? "stable" : "unstable"}`,
        },
      ],
    };
  }

  // Variances over the target's below the limit; the last step ends next to the cliff.
  function cliffOf(tau, curvature) {
    const limit = law.stalenessLimit(tau, curvature);
    const xs = [...STEPS.filter((h) => h < limit), ...[0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999].map((part) => part * limit)]
      .sort((one, other) => one - other);
    return { xs, ys: xs.map((h) => law.staleVariance(h, curvature, tau) * curvature) };
  }

  function cliff(settings, m) {
    const { curvature, staleness: tau } = settings;
    return {
      id: "cliff", title: "Stationary variance over the target's, against the step size",
      x: { label: "step size h", from: 0.005, to: 10, log: true }, y: { label: "ratio", from: 0.5, to: 100, log: true },
      items: [
        { kind: "level", y: 1, style: "thin", name: "target" },
        ...(tau ? [{ kind: "line", ...cliffOf(0, curvature), style: "agents", name: "fresh gradients" }] : []),
        { kind: "line", ...cliffOf(tau, curvature), style: "law", name: `staleness ${tau}` },
        { kind: "upright", x: m.limit, style: "end", name: "limit" },
        ...(m.stationary ? [{
          kind: "mark", shape: "circle", x: settings.stepSize, y: m.stationary.variance * curvature, style: "law", name: "now",
        }] : [{ kind: "mark", shape: "square", x: settings.stepSize, y: 100, style: "alarm", name: "now: unstable" }]),
      ],
    };
  }

  function densities(settings, m) {
    const [from, to] = [-7, 7];
    return {
      id: "densities", title: `Density of the target and of the iterate after ${count(m.n, "iteration")}`,
      x: { label: "x", from, to }, y: { label: "density", from: 0, to: 1.7 * Math.sqrt(settings.curvature / (2 * Math.PI)) },
      items: [
        plots.density(m.target, from, to, "target", "target", true),
        plots.density(m.now, from, to, "law", `law after ${count(m.n, "iteration")}`),
        ...(m.stationary ? [plots.density(m.stationary, from, to, "end", "law at the end")] : []),
      ],
    };
  }

  function python(settings, m) {
    const { curvature } = settings;
    const lines = [
      "import fedsim as fs, theory", "",
      `problem = fs.Quadratic([${curvature}], [[0.0]])`,
      `algorithm = fs.StaleSGLD(step_size=${settings.stepSize}, staleness=${settings.staleness})`,
      `law = theory.exact_law(problem, algorithm, n_rounds=${m.n}, start=[${START}]${m.stable ? "" : ", allow_unstable=True"})`,
      "print(law.w2()[-1], law.mean[-1], law.cov[-1])",
      "print(algorithm.stability(problem))",
    ];
    if (m.stable) {
      lines.push("end = theory.stationary_law(problem, algorithm)", "print(end.w2(problem.target()), end.mean, end.cov)");
    }
    return lines.join("\n");
  }

  return {
    sliders, model, sentence, numbers, python,
    pictures: (settings, m) => [limits(settings, m), cliff(settings, m), plots.distances(m, "iterations", LAST), densities(settings, m)],
  };
})();
if (typeof module !== "undefined") module.exports = Staleness;
else Page.start(Staleness);
