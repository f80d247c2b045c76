"use strict";
// Filters of the index, with their state in the address; sorting of tables; the way to the figures before and
// after. Everything works offline.
const form = document.getElementById("filters");
if (form) {
  const cards = [...document.querySelectorAll(".card")];
  const fields = ["paper", "algorithm", "outcome", "verdict", "whose", "words"];
  const matches = (card, name, value) => {
    if (!value) return true;
    if (name === "words") return card.textContent.toLowerCase().includes(value.toLowerCase());
    return card.dataset[name].split("|").includes(value);
  };
  const show = () => {
    let count = 0;
    for (const card of cards) {
      card.hidden = !fields.every(name => matches(card, name, form.elements[name].value));
      count += !card.hidden;
    }
    for (const group of document.querySelectorAll(".group"))
      group.hidden = !group.querySelector(".card:not([hidden])");
    document.getElementById("count").textContent = count + (count === 1 ? " figure" : " figures");
  };
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) form.elements[name].value = asked.get(name) || "";
    show();
  };
  const tell = () => {
    const asked = new URLSearchParams();
    for (const name of fields) if (form.elements[name].value) asked.set(name, form.elements[name].value);
    history.replaceState(null, "", "#" + asked);
    show();
  };
  form.addEventListener("input", tell);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(tell));
  window.addEventListener("hashchange", () => {  // an anchor of the page is no question: filters stay
    if (!location.hash || location.hash.includes("=")) read();
  });
  if (location.hash.includes("=")) read();
}
const number = text => text.trim() === "" ? NaN : Number(text);
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(one => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    const text = row => row.cells[column].textContent;
    rows.sort((one, other) => {
      const a = number(text(one)), b = number(text(other));
      if (isNaN(a) !== isNaN(b)) return isNaN(a) ? 1 : -1;  // what is no number stands last
      const order = isNaN(a) ? text(one).localeCompare(text(other)) : a - b;
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }));
}
const beside = document.querySelector("[data-figure]");
if (beside) document.addEventListener("DOMContentLoaded", () => {  // order.js has been read by then
  const place = FIGURES.findIndex(([id]) => id === beside.dataset.figure);
  const link = (figure, rel, words) => {
    const made = document.createElement(figure ? "a" : "span");
    if (figure) Object.assign(made, { href: figure[0] + ".html", rel, textContent: words(figure[1]) });
    beside.append(made);
  };
  link(FIGURES[place - 1], "prev", paper => "\u2190 " + paper);
  link(FIGURES[place + 1], "next", paper => paper + " \u2192");
});
