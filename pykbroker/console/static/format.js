// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const NOTHING = "–";

// A text is a whole number that the browser's numbers would round.
export function number(value) {
  if (value === null || value === undefined) return NOTHING;
  return whole.format(typeof value === "string" ? BigInt(value) : value);
}

export function bytes(value) {
  if (value === null || value === undefined) return NOTHING;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${short.format(value)} ${UNITS[unit]}`;
}

export function rate(value) {
  return value === null ? NOTHING : Math.abs(value) >= 1000 ? whole.format(Math.round(value)) : short.format(value);
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const MOST_MS = 8_640_000_000_000_000;

// A moment in the reader's zone and way of writing; one that no calendar has is told in milliseconds.
export function time(ms) {
  const moment = Number(ms);
  return Math.abs(moment) <= MOST_MS ? new Date(moment).toLocaleString() : `${ms} ms`;
}

// The same moment for everybody, with milliseconds; null for one that no calendar has.
export function timeInUtc(ms) {
  const moment = Number(ms);
  return Math.abs(moment) <= MOST_MS ? new Date(moment).toISOString() : null;
}
