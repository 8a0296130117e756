// A plot of values over time, as SVG. Screen readers get its last and its highest value in its name.

import { element, svg } from "./dom.js";

const LEFT = 70;
const BOTTOM = 22;
const TOP = 8;

const LEAST_MS = 60_000;

// label: what is plotted; format: a value as text; keepMs: how far back at most, the first minutes fill the
// width; isBytes: the axis has round numbers of KiB, MiB and so on.
export class Plot {
  constructor({ label, format, keepMs = 300_000, isBytes = false }) {
    this.label = label;
    this.format = format;
    this.keepMs = keepMs;
    this.isBytes = isBytes;
    this.points = [];
    this.now = element("p", { class: "now" }, "–");
    this.drawing = svg("svg", { class: "plot", role: "img", "aria-label": `${label}: no values yet` });
    this.node = element("section", { class: "panel" }, element("h2", {}, label), this.now, this.drawing);
    new ResizeObserver(() => this.draw()).observe(this.drawing);
  }

  // value: null where it is not known: the curve has a gap there.
  add(timeMs, value) {
    this.points.push([timeMs, value]);
    while (this.points[0][0] < timeMs - this.keepMs) this.points.shift();
    this.now.textContent = value === null ? "–" : this.format(value);
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.drawing;
    if (!width || !height) return;
    const known = this.points.filter(([, value]) => value !== null);
    const top = niceTop(Math.max(0, ...known.map(([, value]) => value)), this.isBytes);
    const last = this.points.at(-1)?.[0] ?? 0;
    const backMs = Math.min(this.keepMs, Math.max(LEAST_MS, last - (this.points[0]?.[0] ?? last)));
    const x = (timeMs) => LEFT + ((timeMs - last + backMs) / backMs) * (width - LEFT - 8);
    const y = (value) => TOP + (1 - value / top) * (height - TOP - BOTTOM);
    this.drawing.replaceChildren(...this.axes(width, height, top, y, backMs), ...this.curves(x, y));
    const highest = known.length ? Math.max(...known.map(([, value]) => value)) : null;
    const told = highest === null ? "no values yet" : `now ${this.now.textContent}, highest ${this.format(highest)} in this view`;
    this.drawing.setAttribute("aria-label", `${this.label}: ${told}`);
  }

  axes(width, height, top, y, backMs) {
    const rows = [0, top / 2, top].flatMap((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, this.format(value)),
    ]);
    const ago = backMs < 120_000 ? `${Math.round(backMs / 1000)} s ago` : `${Math.round(backMs / 60_000)} min ago`;
    const times = [
      svg("text", { x: LEFT, y: height - 5 }, ago),
      svg("text", { x: width - 8, y: height - 5, "text-anchor": "end" }, "now"),
    ];
    return [...rows, ...times];
  }

  curves(x, y) {
    return pieces(this.points).flatMap((piece) => {
      const points = piece.map(([timeMs, value]) => `${x(timeMs).toFixed(1)},${y(value).toFixed(1)}`);
      const [first, last] = [x(piece[0][0]).toFixed(1), x(piece.at(-1)[0]).toFixed(1)];
      const area = `${first},${y(0)} ${points.join(" ")} ${last},${y(0)}`;
      return [svg("polygon", { class: "area", points: area }), svg("polyline", { class: "curve", points: points.join(" ") })];
    });
  }
}

function pieces(points) {
  const found = [[]];
  for (const point of points) {
    if (point[1] === null) found.push([]);
    else found.at(-1).push(point);
  }
  return found.filter((piece) => piece.length);
}

function niceTop(value, isBytes) {
  if (value <= 0) return 1;
  const unit = isBytes ? 1024 ** Math.max(0, Math.floor(Math.log(value) / Math.log(1024))) : 1;
  const power = 10 ** Math.floor(Math.log10(value / unit));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each * unit >= value) * unit;
}
