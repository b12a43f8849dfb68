// Makes elements of the page, from text only: results of tools are never parsed as HTML.

const byId = (id) => document.getElementById(id);

/** An element; attributes by name, children as elements or text. */
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function show(node, visible) {
  node.hidden = !visible;
}

/** "1 result", "2 results". */
function countText(count, singular, plural = `${singular}s`) {
  return `${count} ${count === 1 ? singular : plural}`;
}

/** Milliseconds for people. */
function duration(milliseconds) {
  if (milliseconds >= 9999.5) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.round(milliseconds)} ms`;
}

export { byId, countText, duration, element, show };
