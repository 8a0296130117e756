// What the page tells: a line that goes again, read out by screen readers, and failures in the page.

import { element } from "./dom.js";

const SHOWN_MS = 6_000;
let timer;

export function say(text) {
  const place = document.getElementById("status");
  place.replaceChildren(element("p", {}, text));
  clearTimeout(timer);
  timer = setTimeout(() => place.replaceChildren(), SHOWN_MS);
}

// An element with the failure, for a page or a dialog.
export function failureOf(error) {
  const name = error.errorName ?? "CONSOLE_ERROR";
  return element("p", { class: "failure", role: "alert" }, element("span", { class: "name" }, name), ": ", error.message);
}
