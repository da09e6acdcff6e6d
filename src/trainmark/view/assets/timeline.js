"use strict";
// The timeline: spans in lanes on a canvas, moved and zoomed by pointer, wheel, touch, keys and buttons.
(function () {
  const holder = document.querySelector(".timeline");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const root = document.documentElement, canvas = holder.querySelector("canvas");
  const context = canvas.getContext("2d"), readout = holder.querySelector(".readout");
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip span-tip";
  tip.hidden = true;

  const FIELDS = 5, OVERVIEW = 6, RULER = 26, LABEL = 18, BAR = 30, GAP = 8;
  const NARROWEST = 200; // nanoseconds across the whole canvas
  const NEAR = { mouse: 2, pen: 4, touch: 12 }; // pixels
  const count = data.spans.length / FIELDS;
  const lane = new Uint16Array(count), name = new Uint32Array(count), kind = new Uint16Array(count);
  const start = new Float64Array(count), end = new Float64Array(count);
  const first = new Array(data.lanes.length + 1).fill(count); // of each lane; spans are in order of lane and start
  const reach = new Float64Array(count); // the latest end of this lane so far
  for (let i = 0, at = 0; i < count; i += 1) {
    const [itsLane, itsName, itsKind, later, length] = data.spans.slice(FIELDS * i, FIELDS * (i + 1));
    at += later;
    lane[i] = itsLane; name[i] = itsName; kind[i] = itsKind; start[i] = at; end[i] = at + length;
    if (first[itsLane] > i) first[itsLane] = i;
    reach[i] = i && lane[i - 1] === itsLane ? Math.max(reach[i - 1], end[i]) : end[i];
  }
  const ends = [...data.steps.flat(), ...start, ...end];
  const whole = { from: ends.reduce((a, b) => Math.min(a, b)), to: ends.reduce((a, b) => Math.max(a, b)) };
  if (whole.to <= whole.from) whole.to = whole.from + 1;
  const inTime = [...Array(count).keys()].sort((a, b) => start[a] - start[b] || lane[a] - lane[b]);
  const rank = new Uint32Array(count);
  inTime.forEach((span, place) => { rank[span] = place; });

  let view = data.steps.length > 1 ? { from: data.steps[0][0], to: data.steps[0][1] } : { ...whole };
  let width = 0, chosen = -1, only = -1, waiting = false, colours = {};

  const x = (time) => (time - view.from) / (view.to - view.from) * width;
  const timeAt = (pixel) => view.from + pixel / width * (view.to - view.from);
  const top = (row) => OVERVIEW + RULER + row * (LABEL + BAR + GAP) + LABEL;
  const height = top(data.lanes.length - 1) + BAR + GAP;

  function timeText(nanoseconds, resolution) {
    const [unit, scale] = Math.abs(nanoseconds) >= 1e6 || resolution >= 1e4 ? ["ms", 1e6] : ["µs", 1e3];
    const decimals = Math.min(6, Math.max(0, Math.ceil(Math.log10(scale / resolution) - 1e-9)));
    return `${(nanoseconds / scale).toFixed(decimals)} ${unit}`;
  }
  const lengthText = (nanoseconds) => (nanoseconds >= 1e6
    ? `${(nanoseconds / 1e6).toPrecision(4)} ms` : `${(nanoseconds / 1e3).toPrecision(4)} µs`);

  function readColours() {
    const probe = holder.appendChild(document.createElement("i"));
    const value = (property) => getComputedStyle(probe).getPropertyValue(property).trim();
    colours = { kinds: data.classes.map(([, look]) => { probe.className = look; return value("--k"); }) };
    for (const property of ["ink", "muted", "line", "page", "raised", "accent"]) colours[property] = value(`--${property}`);
    probe.remove();
  }

  function resize() {
    width = canvas.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw();
  }

  function schedule() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  // The first span of a lane that has not ended at this time.
  function firstAfter(row, time) {
    let [low, high] = [first[row], lastOf(row)];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (reach[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }
  function lastOf(row) {
    for (let next = row + 1; next < first.length; next += 1) if (first[next] < count) return first[next];
    return count;
  }

  function draw() {
    if (!width) return;
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    drawRuler();
    data.lanes.forEach((text, row) => drawLane(text, row));
    drawSteps();
    if (chosen >= 0) drawChosen();
    drawOverview();
  }

  function drawOverview() {
    const all = whole.to - whole.from;
    context.fillStyle = colours.line;
    context.fillRect(0, 0, width, OVERVIEW - 2);
    context.fillStyle = colours.accent;
    const from = (view.from - whole.from) / all * width;
    context.fillRect(from, 0, Math.max(3, (view.to - view.from) / all * width), OVERVIEW - 2);
  }

  function drawRuler() {
    const wanted = Math.max(2, width / 110), rough = (view.to - view.from) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((part) => part * power).find((size) => size >= rough);
    context.strokeStyle = colours.line;
    context.fillStyle = colours.muted;
    context.beginPath();
    for (let tick = Math.ceil((view.from - whole.from) / step) * step; tick <= view.to - whole.from; tick += step) {
      const at = x(whole.from + tick);
      context.moveTo(at, OVERVIEW + RULER - 6);
      context.lineTo(at, height);
      const text = timeText(tick, step);
      const room = context.measureText(text).width;
      if (at + room < width) context.fillText(text, at + 3, OVERVIEW + RULER / 2);
    }
    context.stroke();
  }

  function drawSteps() {
    data.steps.forEach(([from, to], place) => {
      if (to < view.from || from > view.to) return;
      context.fillStyle = colours.ink;
      for (const edge of [from, to]) {
        if (edge >= view.from && edge <= view.to) context.fillRect(x(edge) - 0.5, OVERVIEW + RULER - 6, 1.5, height);
      }
      const left = Math.max(0, x(from)), right = Math.min(width, x(to));
      const text = data.words.step_number.replace("{number}", place + 1), room = context.measureText(text).width;
      if (right - left > room + 16) label(text, right - room - 8, top(0) - LABEL / 2, colours.ink);
    });
  }

  function label(text, left, middle, colour) {
    context.fillStyle = colours.page;
    context.fillRect(left - 3, middle - 7, context.measureText(text).width + 6, 14);
    context.fillStyle = colour;
    context.fillText(text, left, middle);
  }

  function drawLane(text, row) {
    const y = top(row), last = lastOf(row);
    context.fillStyle = colours.raised;
    context.fillRect(0, y, width, BAR);
    for (let i = firstAfter(row, view.from); i < last && start[i] < view.to; i += 1) {
      if (end[i] < view.from) continue;
      const left = Math.max(-1, x(start[i])), right = Math.min(width + 1, x(end[i]));
      const wide = right - left;
      context.globalAlpha = only >= 0 && kind[i] !== only ? 0.13 : 1;
      context.fillStyle = colours.kinds[kind[i]];
      context.fillRect(left, y, wide > 3 ? wide - 0.7 : Math.max(wide, 0.3), BAR);
      if (wide > 34) {
        context.fillStyle = colours.page;
        context.fillText(fitted(shortName(name[i]), wide - 9), left + 5, y + BAR / 2 + 0.5);
      }
    }
    context.globalAlpha = 1;
    label(text, 3, y - LABEL / 2, colours.muted);
  }

  // Without the return type and the namespaces before the last name.
  function shortName(index) {
    return data.names[index].replace(/^void /, "").replace(/^(?:[\w()]+(?: \w+\))?::)+/, "");
  }

  function fitted(text, room) {
    const start = text.slice(0, Math.ceil(room / 2)), needed = context.measureText(start).width;
    if (needed <= room && start.length === text.length) return text;
    return `${start.slice(0, Math.max(1, Math.floor(start.length * Math.min(1, room / needed)) - 2))}…`;
  }

  function drawChosen() {
    const y = top(lane[chosen]), left = x(start[chosen]), wide = Math.max(3, x(end[chosen]) - left);
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(left - 1, y - 2, wide + 2, BAR + 4);
    context.lineWidth = 1;
  }

  function spanAt(pixel, down, near) {
    const row = data.lanes.findIndex((_, place) => down >= top(place) - 4 && down <= top(place) + BAR + 4);
    if (row < 0) return -1;
    let best = -1, distance = near;
    for (let i = firstAfter(row, timeAt(pixel - near)); i < lastOf(row) && x(start[i]) <= pixel + near; i += 1) {
      const away = Math.max(0, x(start[i]) - pixel, pixel - x(end[i]));
      if (away <= distance) { best = i; distance = away; }
      if (away === 0 && end[i] - start[i] > 0) break;
    }
    return best;
  }

  function facts(i) {
    return `${data.classes[kind[i]][0]} · ${lengthText(end[i] - start[i])} · ${data.words.start} ${timeText(start[i] - whole.from, 1e3)} · ${data.lanes[lane[i]]}`;
  }

  function showReadout() {
    readout.replaceChildren();
    if (chosen < 0) return;
    const strong = document.createElement("strong");
    strong.textContent = data.names[name[chosen]];
    readout.append(strong, document.createElement("br"), facts(chosen));
  }

  function showTip(i, event) {
    tip.hidden = i < 0;
    canvas.style.cursor = i < 0 ? "grab" : "pointer";
    if (i < 0) return;
    const strong = document.createElement("strong"), text = data.names[name[i]];
    strong.textContent = text.length > 90 ? `${text.slice(0, 89)}…` : text;
    tip.replaceChildren(strong, document.createElement("br"), facts(i));
    const half = tip.offsetWidth / 2 + 4;
    tip.style.left = `${Math.min(Math.max(event.clientX, half), root.clientWidth - half)}px`;
    tip.style.top = `${event.clientY}px`;
    tip.classList.toggle("below", event.clientY < tip.offsetHeight + 16);
  }

  function choose(i) {
    chosen = i;
    showReadout();
    schedule();
  }

  // As an attribute of the canvas, where a test can read it.
  function showView() {
    canvas.dataset.view = `${Math.round(view.from)} ${Math.round(view.to)}`;
  }
  function set(from, to) {
    const all = whole.to - whole.from, wide = Math.min(all, Math.max(NARROWEST, to - from));
    const middle = (from + to) / 2;
    from = Math.min(Math.max(whole.from, middle - wide / 2), whole.to - wide);
    view = { from, to: from + wide };
    showView();
    schedule();
  }
  function zoom(factor, pixel = width / 2) {
    const at = timeAt(pixel), wide = Math.max(NARROWEST, (view.to - view.from) / factor);
    set(at - pixel / width * wide, at + (1 - pixel / width) * wide);
  }
  function move(pixels) {
    const by = pixels / width * (view.to - view.from);
    set(view.from + by, view.to + by);
  }

  function neighbour(by) {
    const inside = inTime.find((span) => end[span] > view.from);
    const place = chosen < 0 ? rank[inside] : rank[chosen] + by;
    const next = inTime[Math.min(count - 1, Math.max(0, place))];
    const wide = view.to - view.from;
    if (start[next] < view.from || end[next] > view.to) set((start[next] + end[next]) / 2 - wide / 2, (start[next] + end[next]) / 2 + wide / 2);
    choose(next);
  }

  const pointers = new Map();
  let moved = false, apart = 0;
  const offset = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const spread = () => { const [a, b] = [...pointers.values()]; return Math.abs(a[0] - b[0]) + 1; };
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, offset(event));
    if (pointers.size === 1) moved = false;
    if (pointers.size === 2) { moved = true; apart = spread(); }
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [pixel, down] = offset(event), before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") showTip(spanAt(pixel, down, NEAR.mouse), event);
      return;
    }
    if (pointers.size === 1) {
      if (!moved && Math.abs(pixel - before[0]) < 4) return;
      moved = true;
      move(before[0] - pixel);
      pointers.set(event.pointerId, [pixel, down]);
      return;
    }
    const middle = () => [...pointers.values()].reduce((sum, point) => sum + point[0], 0) / pointers.size;
    const was = middle();
    pointers.set(event.pointerId, [pixel, down]);
    const now = spread();
    move(was - middle());
    zoom(now / apart, middle());
    apart = now;
  });
  const lift = (event) => {
    const before = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (before && !moved && event.type === "pointerup") choose(spanAt(...before, NEAR[event.pointerType] || NEAR.mouse));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => zoom(4, offset(event)[0]));
  canvas.addEventListener("wheel", (event) => {
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX * lines);
    // A page that is only scrolled past stays a page that scrolls.
    else if (event.ctrlKey || event.metaKey || document.activeElement === canvas) {
      zoom(Math.exp(-event.deltaY * lines * 0.002), offset(event)[0]);
    } else return;
    tip.hidden = true;
    event.preventDefault();
  }, { passive: false });
  addEventListener("scroll", () => { tip.hidden = true; }, { capture: true, passive: true });

  const keys = {
    ArrowLeft: () => move(-width / 6), ArrowRight: () => move(width / 6), "+": () => zoom(1.6), "=": () => zoom(1.6),
    "-": () => zoom(1 / 1.6), "0": () => set(whole.from, whole.to), Home: () => set(whole.from, whole.to),
    ",": () => neighbour(-1), ".": () => neighbour(1), Escape: () => choose(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });
  const actions = { in: () => zoom(2), out: () => zoom(0.5), all: () => set(whole.from, whole.to) };
  for (const button of holder.querySelectorAll("button[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
  for (const button of holder.querySelectorAll("button[data-step]")) {
    button.addEventListener("click", () => set(...data.steps[Number(button.dataset.step)]));
  }
  for (const button of holder.querySelectorAll("button[data-kind]")) {
    button.addEventListener("click", () => {
      const kindOf = data.classes.findIndex(([, look]) => look === button.dataset.kind);
      only = only === kindOf ? -1 : kindOf;
      for (const other of holder.querySelectorAll("button[data-kind]")) {
        other.setAttribute("aria-pressed", String(only >= 0 && other === button));
      }
      schedule();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); schedule(); });
  readColours();
  showView();
  new ResizeObserver(resize).observe(canvas.parentElement);
  resize();
  root.dataset.timeline = String(count);
})();
