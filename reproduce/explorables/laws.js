"use strict";
// Exact laws in one dimension: of FA-LD on two clients, of DE-SGLD on a small network, of stale SGLD.
// Pure functions of settings, no document: the pages draw what they return, and
// tests/test_explorables.py compares it with theory.exact_law, theory.stationary_law and stability.
// Every law is Gaussian, {mean, variance}; the temperature is 1.

const LARGEST = 1e12; // beyond it an unstable law is followed no further

function w2(law, target) {
  return Math.hypot(law.mean - target.mean, Math.sqrt(law.variance) - Math.sqrt(target.variance));
}

// Laws at rounds 0, 1, ..., or up to the last one within range, as columns with their distances to the target.
function columns(target, rounds, lawAt) {
  const found = { mean: [], variance: [], w2: [] };
  for (let n = 0; n <= rounds; n += 1) {
    const law = lawAt(n);
    if (!(Math.abs(law.mean) < LARGEST && law.variance < LARGEST)) break;
    found.mean.push(law.mean);
    found.variance.push(law.variance);
    found.w2.push(w2(law, target));
  }
  return found;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

// ---- FA-LD: two clients of weight 1/2, curvatures of mean 1, minimizers half a distance from the origin

function twoClients({ distance, ratio }) {
  return {
    curvatures: [2 / (1 + ratio), 2 * ratio / (1 + ratio)],
    minimizers: [-distance / 2, distance / 2],
  };
}

// sum_{j < K} p^j, without a division
function geometric(p, count) {
  let total = 0;
  let power = 1;
  for (let j = 0; j < count; j += 1) {
    total += power;
    power *= p;
  }
  return total;
}

// A round takes x to factor x + pull + noise. With P_c = 1 - eta a_c and K local steps,
//   factor = sum_c P_c^K / 2,   pull = sum_c (1 - P_c^K) b_c / 2,
//   noise  = sum_ce (1/4) 2 eta s sum_j (P_c P_e)^j + sum_c (1/4) (2 eta (1 - s) / (1/2)) sum_j P_c^(2j).
function federatedRound(settings) {
  const { stepSize: eta, localSteps: K, sharedNoise: s } = settings;
  const { curvatures, minimizers } = twoClients(settings);
  const P = curvatures.map((a) => 1 - eta * a);
  const away = curvatures.map((a, c) => eta * a * geometric(P[c], K)); // 1 - P_c^K
  const shared = sum(P.map((p) => sum(P.map((q) => geometric(p * q, K)))));
  const own = sum(P.map((p) => geometric(p * p, K)));
  return {
    away: sum(away) / 2, // 1 - factor
    pull: sum(away.map((gap, c) => gap * minimizers[c])) / 2,
    noise: 2 * eta * (s * shared / 4 + (1 - s) * own / 2),
  };
}

// Step size at which |sum_c P_c^K| / 2 reaches one. For odd K the sum falls, for even K it is convex, so there
// is one; beyond 2 / min a both terms are at least one in size.
function federatedLimit(settings) {
  const { curvatures } = twoClients(settings);
  let low = 2 / Math.max(...curvatures);
  let high = 2 / Math.min(...curvatures);
  for (let halvings = 0; halvings < 200 && low < high; halvings += 1) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    const factor = sum(curvatures.map((a) => (1 - middle * a) ** settings.localSteps)) / 2;
    if (Math.abs(factor) < 1) low = middle; else high = middle;
  }
  return low;
}

function localSteps(settings) {
  const { curvatures, minimizers } = twoClients(settings);
  const target = { mean: sum(curvatures.map((a, c) => a * minimizers[c])) / 2, variance: 1 };
  const { away, pull, noise } = federatedRound(settings);
  const limit = federatedLimit(settings);
  const stable = settings.stepSize < limit;
  let law = { mean: settings.start, variance: 0 };
  const laws = columns(target, settings.rounds, (n) => {
    if (n > 0) {
      law = {
        mean: law.mean - away * law.mean + pull,
        variance: (1 - away) ** 2 * law.variance + noise,
      };
    }
    return law;
  });
  const stationary = stable ? { mean: pull / away, variance: noise / (away * (2 - away)) } : null;
  if (stationary) stationary.w2 = w2(stationary, target);
  return { target, curvatures, minimizers, limit, stable, radius: Math.abs(1 - away), laws, stationary };
}

// ---- DE-SGLD: N agents, components of two curvatures (mean 1 for even N), minimizers evenly spaced in order

function gridSides(agents) {
  let rows = Math.floor(Math.sqrt(agents));
  while (agents % rows) rows -= 1;
  return [rows, agents / rows];
}

function edges(graph, agents) {
  const all = [...Array(agents).keys()];
  if (graph === "complete") return all.flatMap((i) => all.filter((j) => j > i).map((j) => [i, j]));
  if (graph === "ring") return all.map((i) => [i, (i + 1) % agents]);
  if (graph === "star") return all.slice(1).map((i) => [0, i]);
  const width = graph === "grid" ? gridSides(agents)[1] : agents; // a path is a grid of one row
  const along = all.filter((i) => (i + 1) % width).map((i) => [i, i + 1]);
  return [...along, ...all.filter((i) => i + width < agents).map((i) => [i, i + width])];
}

// Metropolis weights: 1 / max(d_i, d_j) on edges, rows sum to one; degrees count the node itself.
function metropolis(links, agents) {
  const degree = Array(agents).fill(1);
  links.forEach(([i, j]) => { degree[i] += 1; degree[j] += 1; });
  const W = degree.map(() => Array(agents).fill(0));
  links.forEach(([i, j]) => { W[i][j] = 1 / Math.max(degree[i], degree[j]); W[j][i] = W[i][j]; });
  W.forEach((row, i) => { row[i] = 1 - sum(row); });
  return W;
}

// Eigenvalues and eigenvectors (in columns) of a symmetric matrix by Jacobi's rotations.
function eigen(matrix) {
  const A = matrix.map((row) => row.slice());
  const size = A.length;
  const V = A.map((row, i) => row.map((_, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep += 1) {
    let rotated = false;
    for (let p = 0; p < size; p += 1) {
      for (let q = p + 1; q < size; q += 1) {
        if (Math.abs(A[p][q]) <= 1e-18 * Math.hypot(A[p][p], A[q][q]) || A[p][q] === 0) continue;
        rotated = true;
        const tilt = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = (tilt < 0 ? -1 : 1) / (Math.abs(tilt) + Math.hypot(1, tilt));
        const c = 1 / Math.hypot(1, t);
        const s = t * c;
        const turn = (rows, one, other) => {
          for (const row of rows) {
            [row[one], row[other]] = [c * row[one] - s * row[other], s * row[one] + c * row[other]];
          }
        };
        turn(A, p, q);
        for (let k = 0; k < size; k += 1) {
          [A[p][k], A[q][k]] = [c * A[p][k] - s * A[q][k], s * A[p][k] + c * A[q][k]];
        }
        A[p][q] = 0;
        A[q][p] = 0;
        turn(V, p, q);
      }
    }
    if (!rotated) break;
  }
  return { values: A.map((row, i) => row[i]), vectors: V };
}

function components({ agents, distance, ratio }) {
  const all = [...Array(agents).keys()];
  return {
    curvatures: all.map((i) => (2 * i < agents ? 2 / (1 + ratio) : 2 * ratio / (1 + ratio))),
    minimizers: all.map((i) => distance * (i / (agents - 1) - 0.5)),
  };
}

function network({ graph, agents }) {
  const links = edges(graph, agents);
  const W = metropolis(links, agents);
  const spectrum = eigen(W);
  const values = spectrum.values.slice().sort((a, b) => a - b);
  const second = Math.max(Math.abs(values[agents - 2]), Math.abs(values[0]));
  return { links, W, spectrum, second, gap: 1 - second };
}

// W - eta A stays above -1 up to 1 / the largest eigenvalue of (W + 1)^(-1/2) A (W + 1)^(-1/2).
function gossipLimit({ values, vectors }, curvatures) {
  const root = vectors.map((row) => vectors.map((other) => sum(
    values.map((value, k) => row[k] * other[k] / Math.sqrt(1 + value)))));
  const weighted = root.map((row) => root.map((other) => sum(
    curvatures.map((a, k) => row[k] * a * other[k]))));
  return 1 / Math.max(...eigen(weighted).values);
}

// All agents make x' = M x + eta A b + sqrt(2 eta) noise with M = W - eta A = V diag(mu) V', so that
//   mean_t = V (mu^t V' x_0 + (1 - mu^t) / (1 - mu) V' eta A b),  cov_t = V 2 eta (1 - mu^2t) / (1 - mu^2) V'.
function gossip(settings) {
  const { stepSize: eta, agents, rounds, start } = settings;
  const { curvatures, minimizers } = components(settings);
  const net = network(settings);
  const total = sum(curvatures);
  const target = { mean: sum(curvatures.map((a, i) => a * minimizers[i])) / total, variance: 1 / total };
  const M = net.W.map((row, i) => row.map((w, j) => (i === j ? w - eta * curvatures[i] : w)));
  const { values, vectors } = eigen(M);
  const modes = (point) => values.map((_, k) => sum(point.map((x, i) => vectors[i][k] * x)));
  const begin = modes(Array(agents).fill(start));
  const pulls = modes(curvatures.map((a, i) => eta * a * minimizers[i]));
  const rows = [values.map((_, k) => sum(vectors.map((row) => row[k])) / agents), ...vectors];
  // laws of the average and of every agent, of modes with these means and variances
  const views = (means, variances) => rows.map((row) => ({
    mean: sum(row.map((x, k) => x * means[k])),
    variance: sum(row.map((x, k) => x * x * variances[k])),
  }));
  let means = begin;
  let variances = values.map(() => 0);
  const found = [];
  const agentW2 = [];
  const laws = columns(target, rounds, (n) => {
    if (n > 0) {
      means = means.map((x, k) => values[k] * x + pulls[k]);
      variances = variances.map((v, k) => values[k] * values[k] * v + 2 * eta);
    }
    found.push(views(means, variances));
    agentW2.push(sum(found[n].slice(1).map((law) => w2(law, target))) / agents);
    return found[n].reduce((most, law) => (law.variance > most.variance ? law : most), found[n][0]);
  });
  const kept = laws.w2.length;
  const average = found.slice(0, kept).map((all) => all[0]);
  const limit = gossipLimit(net.spectrum, curvatures);
  const stable = eta < limit;
  const stationary = stable ? views(pulls.map((pull, k) => pull / (1 - values[k])),
    values.map((mu) => 2 * eta / ((1 - mu) * (1 + mu)))) : null;
  const average0 = stationary && { ...stationary[0], w2: w2(stationary[0], target) };
  return {
    target, curvatures, minimizers, net, limit, stable, radius: Math.max(...values.map(Math.abs)),
    laws: {
      mean: average.map((law) => law.mean),
      variance: average.map((law) => law.variance),
      w2: average.map((law) => w2(law, target)),
      agentW2: agentW2.slice(0, kept),
      agents: found.slice(0, kept).map((all) => all.slice(1)),
    },
    stationary: average0,
    stationaryAgents: stationary && stationary.slice(1),
    stationaryAgentW2: stationary && sum(stationary.slice(1).map((law) => w2(law, target))) / agents,
  };
}

// ---- stale SGLD: x_{l+1} = x_l - h a (x_{max(l - tau, 0)} - m) + sqrt(2 h) noise, target N(m, 1/a), m = 0

function stalenessLimit(tau, curvature) {
  return 2 * Math.sin(Math.PI / (2 * (2 * tau + 1))) / curvature;
}

// In closed form, with w = 2 asin(h a / 2); null at and beyond the limit.
function staleVariance(h, curvature, tau) {
  if (!(h < stalenessLimit(tau, curvature))) return null;
  const ha = h * curvature;
  const w = 2 * Math.asin(ha / 2);
  const gap = Math.cos(w * tau) - Math.sin(w / 2);
  return h * (Math.cos(w / 2) + Math.sin(w * tau)) / (ha * Math.cos(w / 2) * gap);
}

// A unit of noise in x_{s+1} is answered by g_0 = 1, g_{k+1} = g_k - h a g_{k-tau} (g = 0 before): the variance
// of x_l is 2 h (g_0^2 + ... + g_{l-1}^2). The mean obeys the recursion itself.
function staleness(settings) {
  const { stepSize: h, staleness: tau, curvature, rounds, start } = settings;
  const target = { mean: 0, variance: 1 / curvature };
  const mean = [start];
  const answer = [1];
  let total = 0;
  const laws = columns(target, rounds, (l) => {
    if (l > 0) {
      mean.push(mean[l - 1] - h * curvature * mean[Math.max(l - 1 - tau, 0)]);
      total += answer[l - 1] ** 2;
      answer.push(answer[l - 1] - (l - 1 >= tau ? h * curvature * answer[l - 1 - tau] : 0));
    }
    return { mean: mean[l], variance: 2 * h * total };
  });
  const limit = stalenessLimit(tau, curvature);
  const variance = staleVariance(h, curvature, tau);
  const stationary = variance === null ? null : { mean: 0, variance };
  if (stationary) stationary.w2 = w2(stationary, target);
  return { target, limit, stable: h < limit, laws, stationary };
}

const Laws = {
  LARGEST, w2, localSteps, federatedLimit, gossip, network, gridSides, staleness, stalenessLimit, staleVariance,
};
if (typeof module !== "undefined") module.exports = Laws;
