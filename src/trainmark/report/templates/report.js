"use strict";
(function () {
  const root = document.documentElement;
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const hidden = new Set();

  // Colours in the figures are names of CSS variables, so one palette serves page and plots, light and dark.
  function painted(value, style) {
    if (typeof value === "string") {
      return value.startsWith("--") ? style.getPropertyValue(value).trim() : value;
    }
    if (Array.isArray(value)) {
      return typeof value[0] === "number" ? value : value.map((item) => painted(item, style));
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, style)]));
    }
    return value;
  }

  function merged(base, change) {
    const out = { ...base };
    for (const [key, item] of Object.entries(change)) {
      const nested = item !== null && typeof item === "object" && !Array.isArray(item);
      out[key] = nested ? merged(out[key] || {}, item) : item;
    }
    return out;
  }

  function framed(layout, height) {
    const axis = {
      gridcolor: "--line", linecolor: "--line", zerolinecolor: "--line", zeroline: false,
      automargin: true, title: { standoff: 10, font: { size: 12, color: "--muted" } },
    };
    const frame = {
      height, showlegend: false, autosize: true,
      margin: { l: 48, r: 12, t: 12, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "--muted" },
      hoverlabel: { bgcolor: "--page", bordercolor: "--line", font: { color: "--ink" } },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis/.test(key)) frame[key] = axis;
    }
    return merged(frame, layout);
  }

  function draw(figure) {
    const plot = plots[figure.dataset.plot];
    const select = figure.querySelector("select");
    const pressed = figure.querySelector(".views [aria-pressed=true]");
    const chosen = plot.figures[select ? select.selectedIndex : 0];
    const view = pressed ? chosen.views[pressed.textContent] : {};
    const style = getComputedStyle(root);
    // What belongs to one view is drawn in that one only.
    const seen = chosen.data.filter((trace) => !trace.view || trace.view === pressed.textContent);
    const data = seen.map(({ view: _, ...trace }) =>
      trace.legendgroup === undefined ? trace : { ...trace, visible: !hidden.has(trace.legendgroup) });
    return Plotly.react(
      figure.querySelector(".plot"), painted(data, style),
      painted(merged(framed(chosen.layout, plot.height), view), style),
      { responsive: true, displayModeBar: false },
    );
  }

  const figures = [...document.querySelectorAll("figure[data-plot]")];
  const drawAll = () => figures.forEach(draw);

  for (const figure of figures) {
    const select = figure.querySelector("select");
    if (select) select.addEventListener("change", () => draw(figure));
    const views = [...figure.querySelectorAll(".views button")];
    for (const button of views) {
      button.addEventListener("click", () => {
        views.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        draw(figure);
      });
    }
  }

  for (const button of document.querySelectorAll(".legend button")) {
    const series = button.dataset.series;
    if (button.getAttribute("aria-pressed") === "false") hidden.add(series);
    button.addEventListener("click", () => {
      const shown = hidden.delete(series) || !hidden.add(series);
      button.setAttribute("aria-pressed", String(shown));
      figures.filter((figure) => figure.closest(".scaling")).forEach(draw);
    });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    const words = button.dataset;
    const say = (text) => {
      button.textContent = text;
      setTimeout(() => { button.textContent = words.copy; }, 1600);
    };
    button.addEventListener("click", () => {
      const code = button.parentElement.querySelector("code");
      // Where a browser keeps the clipboard from pages on disk, the text is at least selected.
      const selected = () => {
        getSelection().selectAllChildren(code);
        say(words.selected);
      };
      if (!navigator.clipboard) return selected();
      navigator.clipboard.writeText(code.textContent).then(() => say(words.copied), selected);
    });
  }

  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", drawAll);
  }
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.doubt").forEach((doubt) => { doubt.open = true; });
  });

  for (const figure of figures) {
    draw(figure).then(() => { root.dataset.plots = String(Number(root.dataset.plots) + 1); });
  }
})();
