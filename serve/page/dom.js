// Elements are made of text only: results of tools are never parsed as HTML.

const byId = (id) => document.getElementById(id);

/** An element; attributes by name, children as elements or text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function show(node, shown) {
  node.hidden = !shown;
}

/** "1 result", "2 results". */
function counted(number, one, several = `${one}s`) {
  return `${number} ${number === 1 ? one : several}`;
}

/** Milliseconds for people. */
function duration(milliseconds) {
  if (milliseconds >= 9999.5) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.round(milliseconds)} ms`;
}

export { byId, counted, duration, element, show };
