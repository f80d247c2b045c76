"use strict";
// Answers tests/test_explorables.py: `node explorables.js FOLDER QUESTION` with JSON in and out; FOLDER has laws.js.

const [folder, question] = process.argv.slice(2);
const load = (name) => require(`${folder}/${name}.js`);

// Every choice, and the ends and the middle of every slider.
function corners(page) {
  let all = [{}];
  for (const { name, options } of page.choices || []) {
    all = all.flatMap((settings) => options.map((value) => ({ ...settings, [name]: value })));
  }
  for (const { name, values } of page.sliders) {
    const some = [...new Set([0, Math.floor(values.length / 2), values.length - 1])];
    all = all.flatMap((settings) => some.map((i) => ({ ...settings, [name]: values[i] })));
  }
  return all;
}

const QUESTIONS = {
  // What a law says of settings.
  laws: ({ name, settings }) => settings.map(load("laws")[name]),

  // Settings at which a page shows no number, or says "Unstable" of a stable law or not of an unstable one.
  drawn: (name) => {
    const [page, plots] = [load(name), load("plots")];
    const bad = [];
    let unstable = 0;
    const all = corners(page);
    for (const settings of all) {
      const model = page.model(settings);
      const texts = [
        page.sentence(settings, model), page.python(settings, model), ...page.numbers(settings, model).flat(),
        ...page.pictures(settings, model).flatMap((picture) => [
          picture.title, plots.draw(picture, 350), plots.legend(picture)]),
      ];
      if (texts.some((text) => /NaN|undefined|Infinity|null|out of range/.test(text))) bad.push(settings);
      if (texts[0].startsWith("Unstable") === model.stable) bad.push(settings);
      unstable += !model.stable;
    }
    return { bad, count: all.length, unstable };
  },

  // The Python lines at addresses, and the numbers that the page shows there.
  lines: ({ name, addresses }) => addresses.map((address) => {
    const page = load(name);
    const settings = load("page").settingsOf(page, address);
    const model = page.model(settings);
    const end = model.stationary && model.stationary.w2;
    return { lines: page.python(settings, model), now: model.now.w2, end, limit: model.limit };
  }),

  // Settings of addresses, and the addresses of these settings.
  addresses: ({ name, addresses }) => addresses.map((address) => {
    const { settingsOf, addressOf } = load("page");
    const settings = settingsOf(load(name), address);
    return [settings, addressOf(load(name), settings)];
  }),

  // Names, values and defaults of sliders and choices.
  scales: (name) => [...(load(name).choices || []), ...load(name).sliders]
    .map((scale) => [scale.name, scale.options || scale.values, scale.value]),
};

process.stdout.write(JSON.stringify(QUESTIONS[question](JSON.parse(require("fs").readFileSync(0, "utf8")))));
