// Makes elements of the page from text only, so that no tool's result is parsed as HTML.

const byId = (id) => document.getElementById(id);

/** Return an element with attributes by name, and with elements or texts as children. */
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

/** Return a count with its noun, such as "1 result" or "2 results". */
function countText(count, singular, plural = `${singular}s`) {
  return `${count} ${count === 1 ? singular : plural}`;
}

/** Return a duration as text, in milliseconds or seconds. */
function duration(milliseconds) {
  if (milliseconds >= 9999.5) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.round(milliseconds)} ms`;
}

export { byId, countText, duration, element, show };
