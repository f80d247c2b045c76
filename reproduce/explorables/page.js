"use strict";
// What every page shares: sliders, the address of a setting, pictures, the sentence, the Python lines.
// A page gives `sliders`, `choices`, `model`, `sentence`, `numbers`, `pictures` and `python`, all without document.

const Page = (() => {
  const by = (id) => document.getElementById(id);
  const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const REST = 250; // ms without a change before sentence and address follow

  function nearest(values, wanted) {
    return values.reduce((best, value, i) => (
      Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? i : best), 0);
  }

  // Settings of an address such as #step_size=0.1&local_steps=5; what it does not name is as at first.
  function settingsOf(page, address) {
    const given = new URLSearchParams(address.replace(/^#/, ""));
    const settings = {};
    for (const { name, values, value } of page.sliders) {
      const wanted = Number.parseFloat(given.get(snake(name)));
      settings[name] = Number.isFinite(wanted) ? values[nearest(values, wanted)] : value;
    }
    for (const { name, options, value } of page.choices || []) {
      const wanted = given.get(name);
      settings[name] = options.includes(wanted) ? wanted : value;
    }
    return settings;
  }

  function addressOf(page, settings) {
    return `#${[...(page.choices || []), ...page.sliders]
      .map(({ name }) => `${snake(name)}=${settings[name]}`).join("&")}`;
  }

  function makeControls(page) {
    const choices = (page.choices || []).map(({ name, label, options }) => `<fieldset><legend>${label}</legend>${
      options.map((option) => `<label class="option"><input type="radio" name="${name}" value="${option}">${option}</label>`)
        .join("")}</fieldset>`);
    const sliders = page.sliders.map(({ name, label, values }) => `<div class="slider"><label for="${name}">${label}</label>`
      + `<output id="${name}-value" for="${name}"></output>`
      + `<input type="range" id="${name}" min="0" max="${values.length - 1}" step="1"></div>`);
    by("controls").innerHTML = choices.join("") + sliders.join("");
  }

  function start(page) {
    let settings = settingsOf(page, window.location.hash);
    let model = null;
    let waiting = 0;
    let playing = 0;
    makeControls(page);
    by("pictures").innerHTML = page.pictures(settings, page.model(settings)).map(({ id }) => `<figure id="${id}">`
      + "<figcaption></figcaption><div class=\"drawing\"></div><div class=\"legend\"></div></figure>").join("") + "<dl id=\"numbers\"></dl>";

    function drawAll() {
      for (const picture of page.pictures(settings, model)) {
        const figure = by(picture.id);
        figure.querySelector("figcaption").textContent = picture.title;
        const place = figure.querySelector(".drawing");
        place.innerHTML = Plots.draw(picture, Math.max(280, Math.floor(place.clientWidth)));
        figure.querySelector(".legend").innerHTML = Plots.legend(picture);
      }
    }

    function settle() {
      by("sentence").textContent = page.sentence(settings, model);
      window.history.replaceState(null, "", addressOf(page, settings));
    }

    function showAll() {
      for (const { name, values, unit } of page.sliders) {
        const said = Plots.show(settings[name]) + (unit || "");
        by(name).value = values.indexOf(settings[name]);
        by(name).setAttribute("aria-valuetext", said);
        by(`${name}-value`).textContent = said;
      }
      for (const { name } of page.choices || []) {
        for (const button of document.getElementsByName(name)) button.checked = button.value === settings[name];
      }
      model = page.model(settings);
      by("sentence").classList.toggle("unstable", !model.stable);
      by("numbers").innerHTML = page.numbers(settings, model)
        .map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join("");
      by("python").textContent = page.python(settings, model);
      drawAll();
      window.clearTimeout(waiting);
      waiting = window.setTimeout(settle, REST);
    }

    function stop() {
      window.clearInterval(playing);
      playing = 0;
      by("play").textContent = "Play";
    }

    function play() {
      const { name, values } = page.sliders[page.sliders.length - 1]; // the rounds
      if (playing) { stop(); return; }
      if (settings[name] === values[values.length - 1]) settings[name] = values[0];
      by("play").textContent = "Stop";
      playing = window.setInterval(() => {
        const next = values.indexOf(settings[name]) + 1;
        settings[name] = values[next];
        showAll();
        if (next === values.length - 1) stop();
      }, 60);
    }

    async function copy(text, button) {
      const before = button.textContent;
      try {
        await window.navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch { // not allowed: what is selected can be copied by hand
        window.getSelection().selectAllChildren(by("python"));
        button.textContent = "Selected: press Ctrl+C";
      }
      window.setTimeout(() => { button.textContent = before; }, 2000);
    }

    for (const { name, values } of page.sliders) {
      by(name).addEventListener("input", (event) => {
        if (playing) stop();
        settings[name] = values[Number(event.target.value)];
        showAll();
      });
    }
    for (const { name } of page.choices || []) {
      for (const button of document.getElementsByName(name)) {
        button.addEventListener("change", () => { settings[name] = button.value; showAll(); });
      }
    }
    by("play").addEventListener("click", play);
    by("copy").addEventListener("click", (event) => copy(by("python").textContent, event.currentTarget));
    function follow(address) {
      stop();
      settings = settingsOf(page, address);
      showAll();
    }

    window.addEventListener("hashchange", () => follow(window.location.hash));
    document.querySelector(".reset").addEventListener("click", (event) => {
      event.preventDefault(); // the address may say nothing yet, and then would not change
      follow("");
    });
    window.addEventListener("resize", drawAll);
    showAll();
    settle();
  }

  return { start, settingsOf, addressOf };
})();
if (typeof module !== "undefined") module.exports = Page;
