// Parts of a page that are drawn anew while somebody uses them: the focus of a keyboard, how far a table is scrolled and
// a click that has begun stay what they were.

const REACHABLE = "a[href], button, input, select, textarea, [tabindex]";
const LONGEST_PRESS_MS = 2_000;

let letGo = null;
let whenLetGo = Promise.resolve();

// A pointer is down: what it is on must still be there when it is let go, or the click would reach nothing.
addEventListener(
  "pointerdown",
  () => {
    letGo?.();
    whenLetGo = new Promise((resolve) => (letGo = resolve));
    setTimeout(letGo, LONGEST_PRESS_MS);
  },
  true,
);
// The click comes behind the pointer's way up.
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => letGo?.()), true);

// Resolves when nothing is pressed.
export function untilLetGo() {
  return whenLetGo;
}

// Puts children in the place of all that was there.
export function redraw(place, ...children) {
  const before = reachable(place);
  const at = before.indexOf(document.activeElement);
  const name = at < 0 ? null : nameOf(before[at]);
  const left = place.querySelector(".scrolling")?.scrollLeft ?? 0;
  place.replaceChildren(...children);
  if (at >= 0) {
    const now = reachable(place);
    const again = now.find((each) => nameOf(each) === name) ?? now[at];
    again?.focus({ preventScroll: true });
  }
  const scrolling = place.querySelector(".scrolling");
  if (scrolling) scrolling.scrollLeft = left;
}

function reachable(place) {
  return [...place.querySelectorAll(REACHABLE)];
}

function nameOf(node) {
  return `${node.tagName} ${node.getAttribute("href") ?? node.dataset.sort ?? node.getAttribute("aria-label") ?? node.textContent}`;
}
