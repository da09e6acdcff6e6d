"use strict";
// Filter and sort of every table.sortable; rows stand in the page, or as JSON in the element that data-rows names.
(function () {
  const STEP = 200, LEAST_FILTERED = 12;
  const UNITS = {
    "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9,
    B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
  };
  const words = new Intl.Collator("en", { numeric: true });

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  // The first number of a text in its base unit; hours, minutes and seconds as 1:12:04.
  function numberIn(text) {
    const clock = /\d+(:\d\d){1,2}/.exec(text);
    if (clock) return clock[0].split(":").reduce((total, part) => 60 * total + Number(part), 0);
    const match = /([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*([^\s,;\]]*)/i.exec(text);
    return match ? parseFloat(match[1].replaceAll(",", "")) * (UNITS[match[2]] || 1) : null;
  }

  function fromPage(table) {
    const rows = [...table.tBodies[0].rows];
    return {
      count: rows.length,
      text: (index, column) => (column === undefined ? rows[index] : rows[index].cells[column]).textContent.trim(),
      make: (index) => rows[index],
    };
  }

  // Each column has its distinct cells once, and each row their numbers; a cell is a text or a text and a smaller one.
  function fromJson(id, numeric) {
    const { columns, rows, errata } = JSON.parse(document.getElementById(id).textContent);
    const cell = (index, column) => columns[column][rows[index][column]];
    const text = (index, column) => (column === undefined
      ? columns.map((_, place) => text(index, place)).join(" ") : [cell(index, column)].flat().join(" "));
    function make(index) {
      const row = element("tr");
      columns.forEach((_, column) => {
        const [main, small] = [cell(index, column)].flat();
        const made = element("td", numeric[column] ? "num" : "", main);
        if (small) made.append(" ", element("span", "sub", small));
        row.append(made);
      });
      const wrong = rows[index][columns.length] || [];
      if (wrong.length) {
        const doubt = element("details", "doubt");
        const name = wrong.length === 1 ? "erratum" : `${wrong.length} errata`;
        doubt.append(element("summary", "", name), ...wrong.map((number) => element("p", "", errata[number])));
        row.lastChild.append(doubt);
      }
      return row;
    }
    return { count: rows.length, text, make };
  }

  function serve(table) {
    const heads = [...table.tHead.rows[0].cells];
    const numeric = heads.map((head) => head.classList.contains("num"));
    const source = table.dataset.rows ? fromJson(table.dataset.rows, numeric) : fromPage(table);
    const body = table.tBodies[0], place = table.closest(".scroll") || table;
    const search = element("input"), count = element("span", "quiet"), more = element("button", "", "Show more");
    let matches = [], shown = 0, sorted = null;

    function show() {
      const next = matches.slice(shown, shown + STEP);
      body.append(...next.map(source.make));
      shown += next.length;
      more.hidden = shown === matches.length;
      const all = source.count.toLocaleString("en");
      count.textContent = matches.length === source.count ? `${all} rows` : `${matches.length.toLocaleString("en")} of ${all} rows`;
    }

    function keys(column) {
      return new Map(matches.map((index) => {
        const text = source.text(index, column);
        return [index, numeric[column] ? numberIn(text) : text || null];
      }));
    }

    function update() {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      matches = [...Array(source.count).keys()].filter((index) => {
        const text = wanted.length ? source.text(index).toLowerCase() : "";
        return wanted.every((word) => text.includes(word));
      });
      if (sorted) {
        const known = keys(sorted.column), sign = sorted.falling ? -1 : 1;
        matches.sort((one, other) => {
          const [a, b] = [known.get(one), known.get(other)];
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * (typeof a === "number" ? a - b : words.compare(a, b));
        });
      }
      shown = 0;
      body.replaceChildren();
      show();
    }

    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = element("button", "sort");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // Of numbers the largest first, of words the alphabet; the second click turns it round.
        const again = sorted && sorted.column === column;
        sorted = { column, falling: again ? !sorted.falling : numeric[column] };
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", sorted.falling ? "descending" : "ascending");
        update();
      });
    });
    if (source.count >= LEAST_FILTERED) {
      search.type = "search";
      search.placeholder = table.dataset.filter || "Filter rows";
      search.setAttribute("aria-label", "Filter the rows by words, all of which must occur");
      search.addEventListener("input", update);
      count.setAttribute("aria-live", "polite");
      const line = element("p", "filter");
      line.append(search, " ", count);
      place.before(line);
    }
    more.type = "button";
    more.addEventListener("click", show);
    place.after(more);
    document.documentElement.rowText = (index) => [...Array(heads.length).keys()]
      .map((column) => source.text(index, column)).filter(Boolean).join(", ");
    update();
  }

  document.querySelectorAll("table.sortable").forEach(serve);
})();
