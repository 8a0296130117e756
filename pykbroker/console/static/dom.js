// Elements from names, attributes and children. What is text goes in as text: nothing is ever parsed as HTML here, and what
// cannot be seen in it is named.

import { textNodes } from "./unseen.js";

const SVG = "http://www.w3.org/2000/svg";

// element("a", { href: "/topics", class: "quiet" }, "Topics"): attributes that are null or false are left out, true is
// an empty one, functions are listeners (`onclick`). Children are nodes, texts, numbers, arrays of these, or null.
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  node.append(...nodes(children));
  return node;
}

export function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .flatMap((child) => (child instanceof Node ? child : textNodes(String(child))))
    .map((child) => (child instanceof Node ? child : document.createTextNode(child)));
}

let numbers = 0;

// A new id, for labels and descriptions.
export function newId(noun) {
  numbers += 1;
  return `${noun}-${numbers}`;
}
