// Lists the service's operations, each with a form to try it.

import { byId, element } from "./dom.js";

const resolve = (schema, schemas) =>
  schema && schema.$ref ? schemas[schema.$ref.split("/").pop()] : schema || {};

/** Return an example of a JSON body; null if the schema has none. */
function example(schema, schemas) {
  schema = resolve(schema, schemas);
  if (schema.examples) return schema.examples[0];
  if (schema.type !== "object") return null;
  const result = {};
  for (const [name, property] of Object.entries(schema.properties || {})) {
    const value = example(property, schemas);
    if ((schema.required || []).includes(name) || value !== null) result[name] = value;
  }
  return result;
}

/** Send a request, and show its response while it arrives. */
async function send(method, path, fields, body, output) {
  for (const [name, field] of Object.entries(fields.path))
    path = path.replace("{" + name + "}", encodeURIComponent(field.value));
  const query = new URLSearchParams();
  for (const [name, field] of Object.entries(fields.query))
    if (field.value) query.set(name, field.value);
  const headers = {}, token = byId("token").value;
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  output.textContent = "…";
  try {
    const options = { method: method.toUpperCase(), headers, body: body?.value };
    const response = await fetch("." + path + (query.size ? "?" + query : ""), options);
    output.textContent = response.status + " " + response.statusText + "\n";
    const reader = response.body?.getReader(), decoder = new TextDecoder();
    let text = "";
    while (reader) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      output.textContent = response.status + "\n" + text;
    }
    try {
      output.textContent = response.status + "\n" + JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // Text that is not JSON stays as it is.
    }
  } catch (error) { output.textContent = String(error); }
}

/** Return an operation's description with a form to send a request. */
function operation(method, path, info, schemas) {
  const fields = { path: {}, query: {} };
  const field = ({ in: location, name }) => {
    fields[location][name] = element("input");
    return element("label", {}, name + " ", fields[location][name]);
  };
  const schema = info.requestBody?.content["application/json"].schema;
  const body = schema ? element("textarea") : null;
  if (body) body.value = JSON.stringify(example(schema, schemas), null, 2);
  const output = element("pre", { hidden: true });
  const trySend = () => { output.hidden = false; send(method, path, fields, body, output); };
  return element("details", {},
    element("summary", {}, element("span", { class: "method" }, method.toUpperCase()),
      element("code", {}, path), element("span", {}, " " + (info.summary || ""))),
    ...(info.description || "").split("\n\n").map((paragraph) => element("p", {}, paragraph)),
    ...(info.parameters || []).filter((item) => fields[item.in]).map(field),
    body,
    schema ? element("details", {}, element("summary", {}, "Schema"),
      element("pre", {}, JSON.stringify(resolve(schema, schemas), null, 2))) : null,
    element("button", { onclick: trySend }, "Send"),
    output,
    element("table", {}, ...Object.entries(info.responses).map(([status, { description }]) =>
      element("tr", {}, element("td", {}, status), element("td", {}, description.split("\n")[0])))));
}

const api = await (await fetch("openapi.json")).json();
byId("about").textContent = api.info.description;
const schemas = (api.components || {}).schemas || {};
byId("operations").replaceChildren(...Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, info]) => operation(method, path, info, schemas))));
