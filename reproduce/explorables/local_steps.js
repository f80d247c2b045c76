"use strict";
// The page on local steps: FA-LD with two clients in one dimension. No document in here.

const LocalSteps = (() => {
  const node = typeof module !== "undefined";
  const law = node ? require("./laws.js") : Laws;
  const plots = node ? require("./plots.js") : Plots;
  const { show, count } = plots;
  const START = 4;
  const LAST = 100;
  const KS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100];

  const sliders = [
    { name: "stepSize", label: "step size", values: plots.nice(0.005, 2.5), value: 0.02 },
    { name: "localSteps", label: "local steps K", values: KS, value: 10 },
    { name: "distance", label: "heterogeneity: distance of the minimizers", values: plots.range(0, 8, 0.5), value: 5 },
    { name: "ratio", label: "ratio of the curvatures", values: [1, 1.2, 1.5, 2, 3, 4, 5, 7, 10], value: 4 },
    { name: "sharedNoise", label: "shared noise s (share of the variance)", values: plots.range(0, 1, 0.05), value: 0 },
    { name: "rounds", label: "rounds", values: plots.range(0, LAST), value: 8 },
  ];

  // Curves reach to the last round; `n` is the round shown, or the last one within range before it.
  function model(settings) {
    const all = law.localSteps({ ...settings, rounds: LAST, start: START });
    const n = Math.min(settings.rounds, all.laws.w2.length - 1);
    const now = { mean: all.laws.mean[n], variance: all.laws.variance[n], w2: all.laws.w2[n] };
    return { ...all, n, now };
  }

  function floors(settings) {
    return KS.map((localSteps) => {
      const { stationary } = law.localSteps({ ...settings, localSteps, rounds: 0, start: START });
      return stationary && stationary.w2;
    });
  }

  function sentence(settings, m) {
    if (!m.stable) {
      return `Unstable: the step size ${show(settings.stepSize)} is not below the limit ${show(m.limit, 4)} for K = ${
        settings.localSteps}. The law never settles${m.radius > 1 ? `: a round multiplies deviations by ${show(m.radius)}` : ""}.${
        m.n < settings.rounds ? ` Round ${m.n} is the last one in range, and is shown.` : ""}`;
    }
    const { stationary: end, target, now } = m;
    const bias = Math.abs(end.mean - target.mean);
    const spread = Math.abs(Math.sqrt(end.variance) - Math.sqrt(target.variance));
    const cause = end.w2 < 1e-12 ? "no error at all"
      : bias < 1e-12 ? "an error of the spread alone; the mean is right"
        : bias > spread ? "mostly a bias of the mean, from clients that drift to their own minimizers"
          : "mostly an error of the spread";
    return `After ${count(m.n, "round")} of ${count(settings.localSteps, "local step")} the average iterate is at distance W2 = ${
      show(now.w2)} from the target. It ends at ${show(end.w2)}, ${cause}; the stationary variance is ${
      show(end.variance / target.variance)} times the target's.`;
  }

  function numbers(settings, m) {
    const { now, target, stationary: end } = m;
    return [
      [`W2 after ${count(m.n, "round")}`, show(now.w2, 4)],
      ["W2 at the end (floor)", end ? show(end.w2, 4) : "none: unstable"],
      ["bias of the mean, now", show(now.mean - target.mean, 4)],
      ["bias of the mean, at the end", end ? show(end.mean - target.mean, 4) : "none: unstable"],
      ["variance / target's, now", show(now.variance / target.variance, 4)],
      ["variance / target's, at the end", end ? show(end.variance / target.variance, 4) : "none: unstable"],
      ["stability", `${m.stable ? "stable" : "unstable"}, limit ${show(m.limit, 4)}`],
      ["local steps so far", show(m.n * settings.localSteps)],
    ];
  }

  function densities(m) {
    const [from, to] = [-7, 7];
    return {
      id: "densities", title: `Density of the target and of the average iterate after ${count(m.n, "round")}`,
      x: { label: "x", from, to }, y: { label: "density", from: 0, to: 0.8 },
      items: [
        plots.density(m.target, from, to, "target", "target", true),
        plots.density(m.now, from, to, "law", `law after ${count(m.n, "round")}`),
        ...(m.stationary ? [plots.density(m.stationary, from, to, "end", "law at the end")] : []),
        ...m.minimizers.map((x, c) => ({
          kind: "mark", shape: "triangle", x, y: 0, style: "soft", name: c ? "" : "the clients' minimizers",
        })),
      ],
    };
  }

  function priceOfK(settings, m) {
    const ys = floors(settings);
    const seen = ys.filter((value) => value !== null);
    return {
      id: "price", title: "Where W2 ends, against local steps",
      x: { label: "local steps K", from: 1, to: 100, log: true }, y: plots.decades("W2", seen, 1e-2, 10),
      items: [
        { kind: "line", xs: KS, ys, style: "end", name: "W2 at the end" },
        ...(m.stationary ? [{
          kind: "mark", shape: "square", x: settings.localSteps, y: m.stationary.w2, style: "end", name: "this K",
        }] : []),
        ...(m.stable ? [] : [{ kind: "text", x: 10, y: 0.3, text: "unstable at this K" }]),
      ],
    };
  }

  function python(settings, m) {
    const lines = [
      "import fedsim as fs, theory", "",
      `distance, ratio = ${settings.distance}, ${settings.ratio}`,
      "problem = fs.Quadratic([2 / (1 + ratio), 2 * ratio / (1 + ratio)], [[-distance / 2], [distance / 2]])",
      `algorithm = fs.FALD(step_size=${settings.stepSize}, local_steps=${settings.localSteps}, shared_noise=${settings.sharedNoise})`,
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
    pictures: (settings, m) => [densities(m), plots.distances(m, "rounds", LAST), priceOfK(settings, m)],
  };
})();
if (typeof module !== "undefined") module.exports = LocalSteps;
else Page.start(LocalSteps);
