"use strict";
// Pictures as SVG text. A picture is data: axes and items, or a network; nothing here touches the document.

const MARGIN = { left: 66, right: 16, top: 30, bottom: 54 };

// A number in few digits; what is no finite number is said in words.
function show(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "out of range";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-14) return "0";
  if (size >= 1e5 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e").replace(/\.0+e/, "e");
  const text = value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))));
  return text.includes("e") ? String(Number(text)) : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// "1 round", "2 rounds"
function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

function linearTicks(from, to, room) {
  const raw = (to - from) / Math.max(2, room);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const first = Math.ceil(from / step - 1e-9);
  return [...Array(Math.floor(to / step + 1e-9) - first + 1).keys()].map((i) => (first + i) * step);
}

function logTicks(from, to, room) {
  const low = Math.ceil(Math.log10(from) - 1e-9);
  const high = Math.floor(Math.log10(to) + 1e-9);
  const every = Math.max(1, Math.ceil((high - low) / room));
  const found = [];
  for (let k = low; k <= high; k += every) found.push(10 ** k);
  return found;
}

function axis({ from, to, log }, low, high, room) {
  const place = log ? Math.log10 : (value) => value;
  const scale = (high - low) / (place(to) - place(from));
  return {
    at: (value) => low + (place(value) - place(from)) * scale,
    ticks: (log ? logTicks : linearTicks)(from, to, room),
  };
}

// The points of a line within reach; gaps where it leaves the numbers.
function trace(xs, ys, x, y, box) {
  let text = "";
  let pen = "M";
  xs.forEach((value, i) => {
    const [px, py] = [x.at(value), y.at(ys[i])];
    if (ys[i] === null || Number.isNaN(py)) { pen = "M"; return; }
    const held = Math.min(Math.max(py, box.top - 200), box.bottom + 200);
    text += `${pen}${px.toFixed(1)} ${held.toFixed(1)}${pen === "M" ? "h0" : ""}`; // h0: a lone point is a dot
    pen = "L";
  });
  return text;
}

const SHAPES = {
  circle: (x, y) => `<circle cx="${x}" cy="${y}" r="8"/>`,
  square: (x, y) => `<rect x="${x - 7}" y="${y - 7}" width="14" height="14"/>`,
  triangle: (x, y) => `<path d="M${x} ${y - 9}l9 16h-18z"/>`,
};

function shape(kind, x, y, style) {
  return `<g class="mark ${style}">${SHAPES[kind](Number(x.toFixed(1)), Number(y.toFixed(1)))}</g>`;
}

function drawItem(item, x, y, box) {
  if (item.kind === "line") {
    const path = trace(item.xs, item.ys, x, y, box);
    const filled = item.filled && path
      ? `<path class="fill" d="${path}L${x.at(item.xs[item.xs.length - 1])} ${box.bottom}L${x.at(item.xs[0])} ${box.bottom}z"/>`
      : "";
    return `${filled}<path class="line ${item.style}" d="${path}"/>`;
  }
  if (item.kind === "level") {
    return `<path class="line ${item.style}" d="M${box.left} ${y.at(item.y)}H${box.right}"/>`;
  }
  if (item.kind === "upright") {
    return `<path class="line ${item.style}" d="M${x.at(item.x)} ${box.top}V${box.bottom}"/>`;
  }
  if (item.kind === "text") {
    return `<text class="said" x="${x.at(item.x)}" y="${y.at(item.y)}" text-anchor="${item.anchor || "middle"}">${item.text}</text>`;
  }
  const held = Math.min(Math.max(y.at(item.y), box.top + 9), box.bottom - 9); // a mark is never lost
  return shape(item.shape, Math.min(Math.max(x.at(item.x), box.left), box.right), held, item.style);
}

function drawPlot(picture, width, height) {
  const box = {
    left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom,
  };
  const x = axis(picture.x, box.left, box.right, width / 70);
  const y = axis(picture.y, box.bottom, box.top, height / 60);
  const frame = [
    ...x.ticks.map((value) => `<path class="grid" d="M${x.at(value)} ${box.top}V${box.bottom}"/>`
      + `<text x="${x.at(value)}" y="${box.bottom + 22}" text-anchor="middle">${show(value)}</text>`),
    ...y.ticks.map((value) => `<path class="grid" d="M${box.left} ${y.at(value)}H${box.right}"/>`
      + `<text x="${box.left - 8}" y="${y.at(value) + 6}" text-anchor="end">${show(value)}</text>`),
    `<text class="name" x="${(box.left + box.right) / 2}" y="${height - 8}" text-anchor="middle">${picture.x.label}</text>`,
    `<text class="name" x="0" y="16">${picture.y.label}</text>`,
  ];
  const lines = picture.items.filter((item) => item.kind !== "mark").map((item) => drawItem(item, x, y, box));
  const marks = picture.items.filter((item) => item.kind === "mark").map((item) => drawItem(item, x, y, box));
  const clip = `clip-${picture.id}`;
  return `<clipPath id="${clip}"><rect x="${box.left}" y="${box.top}" width="${box.right - box.left}"`
    + ` height="${box.bottom - box.top}"/></clipPath>${frame.join("")}<g clip-path="url(#${clip})">${lines.join("")}</g>`
    + `<path class="frame" d="M${box.left} ${box.top}V${box.bottom}H${box.right}"/>${marks.join("")}`;
}

// Nodes in the unit square, which may be stretched to the width; the width of a link is its weight.
function drawNetwork({ nodes, links, stretched }, width, height) {
  const size = Math.min(width, height) - 60;
  const across = stretched ? width - 40 : size;
  const at = nodes.map(({ x, y }) => [width / 2 + (x - 0.5) * across, height / 2 + (y - 0.5) * size]);
  const drawn = links.map(({ from, to, weight }) => `<path class="link" stroke-width="${(1 + 14 * weight).toFixed(1)}"`
    + ` d="M${at[from].join(" ")}L${at[to].join(" ")}"/>`);
  const radius = Math.max(13, Math.min(22, size / (2 * nodes.length)));
  const dots = nodes.map(({ label, steep }, i) => `<circle class="node${steep ? " steep" : ""}" cx="${at[i][0]}" cy="${at[i][1]}" r="${radius}"/>`
    + `<text class="node-name${steep ? " steep" : ""}" x="${at[i][0]}" y="${at[i][1] + 6}" text-anchor="middle">${label}</text>`);
  return drawn.join("") + dots.join("");
}

function draw(picture, width) {
  const height = Math.round(Math.min(Math.max(250, width * (picture.tall || 0.66)), 430));
  const inside = picture.nodes ? drawNetwork(picture, width, height) : drawPlot(picture, width, height);
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img"`
    + ` aria-label="${picture.title}">${inside}</svg>`;
}

// The legend: a piece of each line, or its mark, beside its name.
function legend(picture) {
  return (picture.items || []).filter((item) => item.name).map((item) => {
    const drawn = item.kind === "mark" ? shape(item.shape, 22, 12, item.style)
      : `${item.filled ? '<rect class="fill" x="2" y="12" width="40" height="10"/>' : ""}<path class="line ${item.style}" d="M2 12H42"/>`;
    return `<span class="key"><svg width="44" height="24" aria-hidden="true">${drawn}</svg>${item.name}</span>`;
  }).join("");
}

// A density curve; a point mass is an upright line.
function density(law, from, to, style, name, filled = false) {
  if (!(law.variance > 1e-12)) return { kind: "upright", x: law.mean, style, name };
  const sd = Math.sqrt(law.variance);
  const near = [...Array(161).keys()].map((i) => law.mean + (i - 80) * sd / 16); // what is narrow is not missed
  const xs = [from, ...near.filter((x) => x > from && x < to), to];
  return {
    kind: "line", xs, ys: xs.map((x) => Math.exp(-0.5 * ((x - law.mean) / sd) ** 2) / (sd * Math.sqrt(2 * Math.PI))),
    style, name, filled,
  };
}

// A logarithmic axis that stays where it is unless the numbers leave it.
function decades(label, values, from, to, lowest = 1e-8, highest = 1e6) {
  const inside = values.filter((value) => value >= lowest && value <= highest);
  const least = Math.min(from, ...inside.map((value) => 10 ** Math.floor(Math.log10(value))));
  const most = Math.max(to, ...inside.map((value) => 10 ** Math.ceil(Math.log10(value))));
  return { label, from: least, to: most, log: true };
}

// W2 of a model's laws, with its limit and where it is now.
function distances(m, unit, last) {
  const { w2 } = m.laws;
  return {
    id: "distances", title: "W2 to the target against " + unit,
    x: { label: unit, from: 0, to: last }, y: decades("W2", [...w2, m.stationary ? m.stationary.w2 : 1], 1e-2, 10),
    items: [
      { kind: "line", xs: w2.map((_, n) => n), ys: w2, style: "law", name: "W2 after so many " + unit },
      ...(m.stationary ? [{ kind: "level", y: m.stationary.w2, style: "end", name: "where it ends" }] : []),
      { kind: "mark", shape: "circle", x: m.n, y: m.now.w2, style: "law", name: "now" },
      ...(m.stable ? [] : [{ kind: "text", x: last / 2, y: 0.02, text: "unstable" }]),
    ],
  };
}

// Numbers of two digits, evenly spread on a logarithmic scale, from one to another.
function nice(from, to) {
  const found = [];
  for (let k = -6; k <= 3; k += 1) {
    for (const m of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) found.push(Number(`${m}e${k}`));
  }
  return found.filter((value) => value >= from && value <= to);
}

function range(from, to, step = 1) {
  return [...Array(Math.round((to - from) / step) + 1).keys()].map((i) => Number((from + i * step).toFixed(9)));
}

const Plots = { show, count, draw, legend, density, decades, distances, nice, range };
if (typeof module !== "undefined") module.exports = Plots;
