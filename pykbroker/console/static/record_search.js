// A search by key: what is found as it is found, how far the search is, and a button that stops it.

import { element } from "./dom.js";
import { bytes, number, plural } from "./format.js";
import { recordTable } from "./record_table.js";

const BOUNDS = {
  time: "after a minute",
  bytes: "since that is a lot to read",
  found: "since there are so many",
};

export function searchByKey(view, address, asked, list) {
  const state = { rows: [], told: null };
  const line = element("p", { role: "status" });
  const bar = element("progress", { "aria-label": "How far the search is", max: 1, value: 0 });
  const stop = element("button", { type: "button", class: "quiet" }, "Stop");
  const found = element("div");
  const further = element("div", { class: "bar" }, stop);
  const draw = () => found.replaceChildren(recordTable(address, state.rows, { caption: "Found records", empty: "Nothing is found so far." }));
  const ended = (text, ...nodes) => {
    line.textContent = text;
    bar.remove();
    further.replaceChildren(...nodes);
  };
  list.replaceChildren(line, bar, further, found);
  line.textContent = "Searching …";
  draw();
  const { partition, from, to, committed, key, key_kind: keyKind, after } = asked;
  const close = view.events(
    `${address}/records/search`,
    { partition, from, to, committed, key, key_kind: keyKind, after },
    {
      found: (rows) => {
        state.rows.push(...rows);
        draw();
      },
      progress: (told) => {
        state.told = told;
        bar.max = Math.max(1, told.offsets);
        bar.value = told.passed;
        line.textContent = `Searching: ${far(told)}.`;
      },
      done: (told) => ended(`${ending(told)}${failed(told.errors)}`, ...onwards(told, address, asked)),
      failure: (error) => {
        ended("The search has ended.");
        view.fail(error);
      },
    },
  );
  stop.addEventListener("click", () => {
    close();
    ended(`Stopped. ${state.told ? capital(far(state.told)) : "Nothing was looked at"}.`);
  });
}

function far(told) {
  const offsets = `${number(told.passed)} of ${plural(told.offsets, "offset")}`;
  return `${offsets} looked through, ${bytes(told.size_bytes)}, ${plural(told.found, "record")} found`;
}

function ending(told) {
  if (told.reason === "end") return `Done: ${far(told)}.`;
  return `Stopped ${BOUNDS[told.reason]}: ${far(told)}.`;
}

function failed(errors) {
  const entries = Object.entries(errors).slice(0, 5).map(([partition, error]) => `${partition}: ${error}`);
  return entries.length ? ` Not searched: ${entries.join(", ")}.` : "";
}

function onwards(told, address, asked) {
  if (!told.after) return [];
  const query = new URLSearchParams(Object.entries({ ...asked, before: "", after: told.after }).filter(([, value]) => value !== ""));
  return [element("a", { class: "button quiet", href: `${address}/records?${query}` }, "Search on from there")];
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
