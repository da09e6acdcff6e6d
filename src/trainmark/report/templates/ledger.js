"use strict";
(function () {
  // Thousands of rows: only those asked for are made into elements, some hundreds at a time.
  const STEP = 200;
  const { numeric, rows, errata } = JSON.parse(document.getElementById("rows").textContent);
  const texts = rows.map((row) => row.cells.flat().join(" ").toLowerCase());
  const body = document.querySelector("#ledger tbody");
  const more = document.getElementById("more");
  const count = document.getElementById("count");
  const search = document.getElementById("search");
  let matches = [];
  let shown = 0;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  // A cell is a text, or a text with a smaller one behind it.
  function cell(value, index) {
    const [text, small] = Array.isArray(value) ? value : [value, ""];
    const made = element("td", numeric.includes(index) ? "num" : "", text);
    if (small) made.append(" ", element("span", "sub", small));
    return made;
  }

  function line(row) {
    const made = element("tr");
    made.append(...row.cells.map(cell));
    if (row.errata.length) {
      const name = row.errata.length === 1 ? "erratum" : `${row.errata.length} errata`;
      const doubt = element("details", "doubt");
      doubt.append(element("summary", "", name), ...row.errata.map((number) => element("p", "", errata[number])));
      made.lastChild.append(doubt);
    }
    return made;
  }

  function show() {
    const next = matches.slice(shown, shown + STEP);
    body.append(...next.map((index) => line(rows[index])));
    shown += next.length;
    more.hidden = shown === matches.length;
    count.textContent = `${shown.toLocaleString("en")} of ${matches.length.toLocaleString("en")} rows`;
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    matches = [];
    texts.forEach((text, index) => {
      if (words.every((word) => text.includes(word))) matches.push(index);
    });
    shown = 0;
    body.replaceChildren();
    show();
  }

  search.addEventListener("input", filter);
  more.addEventListener("click", show);
  filter();
})();
