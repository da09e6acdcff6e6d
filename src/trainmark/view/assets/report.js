"use strict";
(function () {
  const root = document.documentElement;
  const choose = (items, index) => items.forEach((item, place) => item.classList.toggle("chosen", place === index));

  // The text of a point under the pointer, in place of the browser's own slow one.
  const texts = new Map();
  for (const title of document.querySelectorAll(".chart title")) {
    texts.set(title.parentElement, title.textContent);
    title.remove();
  }
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;

  const NEAR = 32;
  const vertices = new WeakMap();

  // A path is a place and then steps, each a pair of numbers.
  function pointsOf(path) {
    if (!vertices.has(path)) {
      const points = [];
      for (const stretch of path.getAttribute("d").split("M").filter(Boolean)) {
        const numbers = stretch.match(/-?\d+/g).map(Number);
        let [x, y] = [0, 0];
        for (let i = 0; i + 1 < numbers.length; i += 2) points.push([x += numbers[i], y += numbers[i + 1]]);
      }
      vertices.set(path, points);
    }
    return vertices.get(path);
  }

  function valueAt(scale, share) {
    const [low, high, log] = scale.split(" ").map(Number);
    const value = log ? low * (high / low) ** share : low + (high - low) * share;
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  }

  function nearest(panel, event) {
    const area = panel.querySelector(".area").getBoundingClientRect();
    let best = { distance: NEAR };
    const offer = (x, y, text, link) => {
      const distance = Math.hypot(x - event.clientX, y - event.clientY);
      if (distance < best.distance) best = { distance, x, y, text, link };
    };
    for (const point of panel.querySelectorAll("g:not(.off) > :is(circle, rect, line), g:not(.off) > a > *")) {
      const known = point.dataset.row ? () => root.rowText(Number(point.dataset.row)) : texts.get(point);
      if (!known) continue;
      const box = point.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right
        && event.clientY >= box.top && event.clientY <= box.bottom;
      const link = point.closest("a");
      if (inside) offer(event.clientX, event.clientY, known, link);
      else offer((box.left + box.right) / 2, (box.top + box.bottom) / 2, known, link);
    }
    for (const path of panel.querySelectorAll("g:not(.off) path[data-tip]")) {
      const box = path.ownerSVGElement.viewBox.baseVal;
      for (const [x, y] of pointsOf(path)) {
        const across = x / box.width, down = y / box.height;
        if (down < 0 || down > 1) continue;
        offer(area.left + across * area.width, area.top + down * area.height, () => {
          const words = path.dataset.tip.replace("{x}", valueAt(panel.dataset.x, across));
          const name = path.dataset.name ? `${path.dataset.name}: ` : "";
          return name + words.replace("{y}", `≈ ${valueAt(panel.dataset.y, 1 - down)}`);
        });
      }
    }
    return best;
  }

  function point(event) {
    const panel = event.target.closest(".panel");
    const best = panel ? nearest(panel, event) : {};
    tip.hidden = !best.text;
    if (!best.text) return;
    tip.textContent = typeof best.text === "function" ? best.text() : best.text;
    const half = tip.offsetWidth / 2 + 4;
    tip.style.left = `${Math.min(Math.max(best.x, half), root.clientWidth - half)}px`;
    tip.style.top = `${best.y}px`;
    tip.classList.toggle("below", best.y < tip.offsetHeight + 16);
  }

  const figures = document.querySelectorAll("figure[data-plot]");
  for (const figure of figures) {
    const select = figure.querySelector("select");
    const choices = [...figure.querySelectorAll(".choice")];
    if (select) select.addEventListener("change", () => choose(choices, select.selectedIndex));
    const buttons = [...figure.querySelectorAll(".views button")];
    buttons.forEach((button, index) => button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      choices.forEach((choice) => choose([...choice.querySelectorAll(".view")], index));
    }));
    figure.addEventListener("pointermove", point);
    figure.addEventListener("pointerdown", point);
    // A finger hits beside a small dot: the nearest one is meant.
    figure.addEventListener("click", (event) => {
      const panel = event.target.closest("a") ? null : event.target.closest(".panel");
      const link = panel && nearest(panel, event).link;
      if (link) location.assign(link.href.baseVal);
    });
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { capture: true, passive: true });

  // The dot whose card the address names.
  const links = [...document.querySelectorAll(".chart a")];
  const showCurrent = () => links.forEach((link) => {
    link.classList.toggle("current", link.href.baseVal === location.hash);
  });
  addEventListener("hashchange", showCurrent);
  showCurrent();

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(shown));
      for (const mark of button.closest(".scaling").querySelectorAll("g[data-series]")) {
        if (mark.dataset.series === button.dataset.series) mark.classList.toggle("off", !shown);
      }
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

  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  });
  root.dataset.plots = String(figures.length);
})();
