// Tabs: links between the pages of one thing, such as a topic.

import { element } from "./dom.js";
import { VIEWS } from "./views.js";

// entry: the page's line in `views.js`; null for a page without tabs, or with one alone.
export function tabs(entry, params) {
  const entries = entry.of ? VIEWS.filter((each) => each.of === entry.of) : [];
  if (entries.length < 2) return null;
  const links = entries.map((each) => {
    const address = each.path.replace(/:([a-z]+)/g, (_, name) => encodeURIComponent(params[name]));
    return element("li", {}, element("a", { href: address, "aria-current": each === entry ? "page" : null }, each.tab));
  });
  return element("nav", { class: "tabs", "aria-label": "Views of this" }, element("ul", {}, links));
}
