"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

function node(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

function clipped(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}

// A scale from values to pixels with round ticks: logarithmic if values reach far beyond the cutoff.
function scaled(values, cutoff, from, to) {
  const positive = values.filter((value) => value > 0).sort((a, b) => a - b);
  const largest = Math.max(positive.at(-1) ?? 1, cutoff) * 1.05;
  if (largest > 8 * cutoff && cutoff > 0) {
    const usual = positive[Math.floor(positive.length / 20)] ?? cutoff;
    const least = Math.max(Math.min(usual, cutoff) / 1.5, largest * 1e-9);
    const ratio = Math.log(largest * 1.2 / least);
    const ticks = [];
    for (let power = Math.ceil(Math.log10(least)); 10 ** power <= largest; power++) ticks.push(10 ** power);
    return { at: (v) => from + (to - from) * Math.log(Math.max(v, least) / least) / ratio, ticks };
  }
  const rough = largest / 5, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * unit >= rough) * unit;
  const ticks = [];
  for (let tick = 0; tick <= largest; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return { at: (v) => from + (to - from) * v / largest, ticks };
}

function drawMap(place, map) {
  const width = Math.max(Math.min(place.clientWidth, 1040), 320), height = Math.min(560, width * .75 + 60);
  const right = width - 14, top = 26, bottom = height - 46;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Score distance against orthogonal distance" });
  const y = scaled(map.points.map((p) => p[2]), map.orthogonal_cutoff ?? 1, bottom, top);
  const left = 30 + 7 * Math.max(4, ...y.ticks.map((tick) => short(tick).length));
  const x = scaled(map.points.map((p) => p[1]), map.score_cutoff ?? 1, left, right);
  node("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }, svg);
  node("line", { class: "axis", x1: left, x2: left, y1: bottom, y2: top }, svg);
  for (const tick of x.ticks) node("text", { x: x.at(tick), y: bottom + 17, "text-anchor": "middle", class: "dim" }, svg, short(tick));
  for (const tick of y.ticks) node("text", { x: left - 7, y: y.at(tick) + 4, "text-anchor": "end", class: "dim" }, svg, short(tick));
  node("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, svg, "score distance (within the pattern)");
  node("text", { transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, "orthogonal distance (off the pattern)");
  const cx = map.score_cutoff === null ? null : x.at(map.score_cutoff);
  const cy = map.orthogonal_cutoff === null ? null : y.at(map.orthogonal_cutoff);
  if (cx !== null) node("line", { class: "cut", x1: cx, x2: cx, y1: top, y2: bottom }, svg);
  if (cy !== null) node("line", { class: "cut", x1: left, x2: right, y1: cy, y2: cy }, svg);
  if (cx !== null && cy !== null) {
    const name = (text, px, py, anchor) => node("text", { x: px, y: py, "text-anchor": anchor, class: "dim" }, svg, text);
    if (cy - top > 20) {
      if (cx - left > 110) name("breaks the pattern", left + 6, top - 12, "start");
      if (right - cx > 130) name("bad leverage", right - 4, top - 12, "end");
    }
    if (bottom - cy > 24 && right - cx > 110) name("good leverage", right - 4, bottom - 6, "end");
    if (bottom - cy > 24 && cx - left > 60) name("regular", left + 6, bottom - 6, "start");
  }
  const classes = ["usual", "near", "far"];
  const dots = map.points.map((p) => ({ p, px: x.at(p[1]), py: y.at(p[2]) }));
  // Flagged rows are drawn last, the worst of them on top.
  for (const dot of dots.slice().reverse()) {
    dot.circle = node("circle", { cx: dot.px, cy: dot.py, r: dot.p[3] ? 4 : 2.6, class: classes[dot.p[3]] }, svg);
  }
  // The worst rows have their names from the start, where these cover nothing.
  const names = node("g", {}, svg), taken = [];
  for (const dot of dots.slice(0, 40)) {
    if (taken.length >= 8 || !dot.p[3]) break;
    const text = clipped(dot.p[0], 18), wide = 7 * text.length + 4;
    const free = [8, -8 - wide].map((gap) => [dot.px + gap, dot.py - 7, dot.px + gap + wide, dot.py + 7]).find((box) =>
      box[0] > left && box[2] < right && box[1] > top - 9
      && !taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])
      && !dots.some((other) => other.px > box[0] - 3 && other.px < box[2] + 3 && other.py > box[1] && other.py < box[3]));
    if (!free) continue;
    taken.push(free);
    const end = free[0] < dot.px;
    node("text", { x: end ? dot.px - 8 : dot.px + 8, y: dot.py + 4, "text-anchor": end ? "end" : "start", class: "name" }, names, text);
  }
  const pins = new Set(), labels = node("g", {}, svg), brush = node("rect", { class: "brush", width: 0, height: 0 }, svg);
  const told = document.getElementById("told"), picked = document.getElementById("picked");
  const sentence = (p) => `Row ${p[0]}` + (p[4] ? `: ${p[4]}` : "") + ` (score ${short(p[1])}, orthogonal ${short(p[2])})`;
  let current = null, start = null;

  function label() {
    labels.replaceChildren();
    names.style.opacity = current || pins.size ? .25 : 1;
    for (const dot of [...pins, ...(current && !pins.has(current) ? [current] : [])]) {
      const end = dot.px > width * .7;
      node("text", { x: dot.px + (end ? -8 : 8), y: dot.py - 6, "text-anchor": end ? "end" : "start", "font-weight": 600 }, labels, clipped(dot.p[0], 28));
    }
  }
  function show(dot) {
    if (current) current.circle.classList.remove("at");
    current = dot;
    if (dot) dot.circle.classList.add("at");
    told.textContent = dot ? sentence(dot.p) : "";
    label();
  }
  function pin(dot) {
    if (pins.has(dot)) pins.delete(dot); else pins.add(dot);
    list([...pins]);
    label();
  }
  function list(some) {
    picked.replaceChildren(...some.slice(0, 200).map((dot) => {
      const item = document.createElement("li");
      item.textContent = sentence(dot.p);
      return item;
    }));
  }
  function position(event) {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height];
  }
  function nearest([px, py]) {
    let best = null, least = 18 ** 2;
    for (const dot of dots) {
      const away = (dot.px - px) ** 2 + (dot.py - py) ** 2;
      if (away < least) { least = away; best = dot; }
    }
    return best;
  }
  svg.addEventListener("pointermove", (event) => {
    const here = position(event);
    if (!start) return show(nearest(here));
    const [x0, x1] = [start[0], here[0]].sort((a, b) => a - b), [y0, y1] = [start[1], here[1]].sort((a, b) => a - b);
    for (const [key, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) brush.setAttribute(key, value);
    const inside = dots.filter((dot) => dot.px >= x0 && dot.px <= x1 && dot.py >= y0 && dot.py <= y1);
    if (x1 - x0 > 4) { list(inside); told.textContent = `${inside.length} rows in the frame.`; }
  });
  svg.addEventListener("pointerdown", (event) => { start = position(event); });
  addEventListener("pointerup", (event) => {
    if (!start) return;
    const here = position(event), moved = Math.hypot(here[0] - start[0], here[1] - start[1]);
    start = null;
    if (moved <= 4) {
      const dot = nearest(here);
      if (dot) pin(dot);
    }
    brush.setAttribute("width", 0);
  });
  place.onkeydown = (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in steps) {
      const index = current ? dots.indexOf(current) + steps[event.key] : 0;
      show(dots[(index + dots.length) % dots.length]);
    } else if (event.key === "Enter" && current) pin(current);
    else if (event.key === "Escape") { pins.clear(); list([]); show(null); }
    else return;
    event.preventDefault();
  };
  place.replaceChildren(svg);
}

// Horizontal bars in groups of two, for values of either sign.
function drawBars(place, bars) {
  const groups = Object.entries(bars.groups), line = 15 * groups.length + 8;
  const width = Math.max(Math.min(place.clientWidth, 520), 280), names = Math.min(170, width * .36);
  const values = groups.flatMap(([, group]) => group.filter((value) => value !== null));
  const low = Math.min(0, ...values), most = Math.max(0, ...values, low + 1e-12), room = 58;
  // Bars that would leave nothing to be seen of the other group are cut.
  const other = Math.max(...groups.at(-1)[1], 0), high = most > 20 * other && other > 0 ? 4 * other : most;
  const at = (value) => names + (low < 0 ? room : 0) + (width - names - room - (low < 0 ? room : 0)) * (value - low) / (high - low);
  const height = line * bars.names.length + 28;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  node("title", {}, svg, groups.map(([name]) => name).join(" and "));
  let legend = names;
  groups.forEach(([name], g) => {
    node("rect", { x: legend, y: 3, width: 11, height: 11, rx: 2, class: ["first", "second"][g] }, svg);
    node("text", { x: legend + 16, y: 13 }, svg, name);
    legend += 32 + 7 * name.length;
  });
  bars.names.forEach((name, i) => {
    const top = 26 + i * line;
    const label = node("text", { x: names - 8, y: top + line / 2, "text-anchor": "end" }, svg, clipped(name, Math.floor(names / 7)));
    node("title", {}, label, name);
    groups.forEach(([group, found], g) => {
      const value = found[i];
      if (value === null) return;
      const end = at(Math.min(value, high)), x0 = Math.min(at(0), end), w = Math.abs(end - at(0));
      const bar = node("rect", { x: x0, y: top + 15 * g, width: Math.max(w, 1), height: 12, class: ["first", "second"][g] }, svg);
      node("title", {}, bar, `${name}, ${group}: ${short(value)}`);
      if (value > high) node("path", { d: `M${end - 14} ${top + 15 * g + 13}l5 -14m3 0l-5 14`, class: "torn" }, svg);
      node("text", { x: end + (value < 0 ? -4 : 4), y: top + 15 * g + 10, "text-anchor": value < 0 ? "end" : "start", class: "dim" }, svg, short(value));
    });
  });
  place.replaceChildren(svg);
}

function drawCells(place, cells) {
  const width = Math.max(Math.min(place.clientWidth, 1040), 320), names = Math.min(130, width * .25), head = 92;
  const side = Math.min(26, Math.max(7, (width - names - 60) / cells.columns.length)), tall = Math.min(side, 18);
  const height = head + tall * cells.rows.length + 8;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  node("title", {}, svg, "Cells of rows with wrong or missing ones");
  cells.columns.forEach((name, j) => {
    if (side < 10 && j % 2) return;
    node("text", { transform: `translate(${names + side * (j + .65)} ${head - 6}) rotate(-55)` }, svg, clipped(name, 14));
  });
  cells.rows.forEach((name, i) => {
    const top = head + tall * i;
    if (tall >= 10 || i % 2 === 0) node("text", { x: names - 6, y: top + tall * .75, "text-anchor": "end", class: "dim" }, svg, clipped(name, Math.floor(names / 7)));
    cells.sigmas[i].forEach((sigmas, j) => {
      const left = names + side * j, box = { x: left, y: top, width: side - 1, height: tall - 1 };
      if (sigmas === null) {
        node("path", { d: `M${left} ${top}l${side - 1} ${tall - 1}m0 ${1 - tall}l${1 - side} ${tall - 1}`, stroke: "var(--soft)" }, svg);
      } else {
        const strength = Math.min(Math.log1p(Math.abs(sigmas)) / Math.log(60), 1);
        box.style = `fill: rgba(var(${sigmas < 0 ? "--low" : "--high"}), ${strength.toFixed(2)})`;
      }
      const shape = node("rect", { fill: "transparent", stroke: cells.wrong[i][j] ? "var(--ink)" : "var(--line)", "stroke-width": cells.wrong[i][j] ? 1.6 : .5, ...box }, svg);
      node("title", {}, shape, `row ${name}, ${cells.columns[j]}: ` + (sigmas === null ? "missing" : `${short(sigmas)} sigmas`));
    });
  });
  place.replaceChildren(svg);
}

const drawers = { map: drawMap, loadings: drawBars, spectrum: drawBars, columns: drawBars, values: drawBars, cells: drawCells };
function drawAll() {
  for (const [name, draw] of Object.entries(drawers)) {
    const place = document.getElementById(name);
    if (place && data[name]) draw(place, data[name]);
  }
}
drawAll();
let drawn = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawn) { drawn = innerWidth; drawAll(); } });
