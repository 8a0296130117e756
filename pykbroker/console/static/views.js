// All pages of the console, one line each. path: with its parameters as ":name"; module: has a function `show(view)`;
// navigation: the link's text on top, for pages that have one. The first line that fits an address is shown.

export const VIEWS = [
  { path: "/", navigation: "Overview", module: "./views/overview.js" },
  { path: "/topics", navigation: "Topics", module: "./views/topics.js" },
  { path: "/topics/:name", module: "./views/topic.js" },
];
