// Characters that cannot be seen, or that turn the direction of writing around, are named instead of obeyed: a name or a
// record cannot pass for another one.

const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const MOST_NAMED = 500;

// The text as nodes and texts, such as "a", <span>U+202E</span>, "b".
export function textNodes(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (found.length >= 2 * MOST_NAMED) break;
    found.push(text.slice(at, match.index), mark(match[0]));
    at = match.index + 1;
  }
  found.push(text.slice(at).replace(UNSEEN, "\ufffd"));
  return found;
}

// The text as it can be read and typed.
export function readable(text) {
  return text.replace(UNSEEN, nameOf);
}

function mark(character) {
  const node = document.createElement("span");
  node.className = "unseen";
  node.textContent = nameOf(character);
  return node;
}

function nameOf(character) {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
