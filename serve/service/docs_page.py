"""The page at ``/docs``: the service's operations and a form to try each, without any other host.

FastAPI's own page loads its scripts from a CDN, so that it is blank offline.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)
_POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # A newer version of the package has another page.
    "Cache-Control": "no-cache",
}


@router.api_route("/docs", methods=["GET", "HEAD"])
async def docs() -> HTMLResponse:
    """Return the page."""
    return HTMLResponse(_PAGE, headers=_HEADERS)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Casewright</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
details { border: 1px solid #ccc; border-radius: .4rem; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; } code, pre, textarea, input { font: 14px/1.4 ui-monospace, monospace; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 700; color: #1a4f8a; }
pre { background: #f4f4f4; padding: .6rem; overflow: auto; max-height: 26rem; }
textarea { width: 100%; min-height: 7rem; } input { width: 22rem; max-width: 100%; }
label { display: block; margin: .4rem 0; } table { border-collapse: collapse; }
td { padding: .1rem .8rem .1rem 0; vertical-align: top; }
</style></head><body>
<h1>Casewright</h1><p id="about"></p>
<label>Bearer token <input id="token" type="password" autocomplete="off"></label>
<main id="operations">Reading <a href="openapi.json">openapi.json</a> …</main>
<script>
const make = (name, text, parent) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};
const resolve = (schema, all) =>
  schema && schema.$ref ? all[schema.$ref.split("/").pop()] : schema || {};
function example(schema, all) {
  schema = resolve(schema, all);
  if (schema.examples) return schema.examples[0];
  if (schema.type !== "object") return null;
  const made = {};
  for (const [name, part] of Object.entries(schema.properties || {})) {
    const value = example(part, all);
    if ((schema.required || []).includes(name) || value !== null) made[name] = value;
  }
  return made;
}
async function send(method, path, fields, body, shown) {
  for (const [name, field] of Object.entries(fields.path))
    path = path.replace("{" + name + "}", encodeURIComponent(field.value));
  const query = new URLSearchParams();
  for (const [name, field] of Object.entries(fields.query))
    if (field.value) query.set(name, field.value);
  const headers = {}, token = document.getElementById("token").value;
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  shown.textContent = "…";
  try {
    const asked = { method: method.toUpperCase(), headers, body: body ? body.value : undefined };
    const reply = await fetch("." + path + (query.size ? "?" + query : ""), asked);
    shown.textContent = reply.status + " " + reply.statusText + "\\n";
    const reader = reply.body && reply.body.getReader(), decoder = new TextDecoder();
    let text = "";
    for (; reader;) {
      const part = await reader.read();
      if (part.done) break;
      text += decoder.decode(part.value, { stream: true });
      shown.textContent = reply.status + "\\n" + text;
    }
    try {
      shown.textContent = reply.status + "\\n" + JSON.stringify(JSON.parse(text), null, 2);
    } catch {}
  } catch (error) { shown.textContent = String(error); }
}
function operation(method, path, about, all, parent) {
  const box = make("details", undefined, parent), head = make("summary", undefined, box);
  make("span", method.toUpperCase(), head).className = "method";
  make("code", path, head); make("span", " " + (about.summary || ""), head);
  for (const part of (about.description || "").split("\\n\\n")) make("p", part, box);
  const fields = { path: {}, query: {} };
  for (const one of about.parameters || []) {
    if (!fields[one.in]) continue;
    const label = make("label", one.name + " ", box);
    fields[one.in][one.name] = make("input", undefined, label);
  }
  let body = null;
  if (about.requestBody) {
    const schema = about.requestBody.content["application/json"].schema;
    body = make("textarea", undefined, box);
    body.value = JSON.stringify(example(schema, all), null, 2);
    const inner = make("details", undefined, box);
    make("summary", "Schema", inner);
    make("pre", JSON.stringify(resolve(schema, all), null, 2), inner);
  }
  const button = make("button", "Send", box), shown = make("pre", undefined, box);
  shown.hidden = true;
  button.onclick = () => { shown.hidden = false; send(method, path, fields, body, shown); };
  const table = make("table", undefined, box);
  for (const [status, one] of Object.entries(about.responses)) {
    const row = make("tr", undefined, table);
    make("td", status, row); make("td", one.description.split("\\n")[0], row);
  }
}
fetch("openapi.json").then(reply => reply.json()).then(api => {
  document.getElementById("about").textContent = api.info.description;
  const parent = document.getElementById("operations");
  parent.textContent = "";
  const all = (api.components || {}).schemas || {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, about] of Object.entries(methods))
      operation(method, path, about, all, parent);
});
</script></body></html>
"""
