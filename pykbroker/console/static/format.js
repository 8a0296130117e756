// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const NOTHING = "–";

export function number(value) {
  return value === null || value === undefined ? NOTHING : whole.format(value);
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

export function time(ms) {
  return new Date(ms).toLocaleString();
}
