// Requests to the service, its errors, and its server-sent events.

/** What the service refused, in its own words (a problem document, RFC 9457). */
class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function refusal(reply) {
  let detail = `The service answered with ${reply.status}.`;
  try {
    detail = (await reply.json()).detail || detail;
  } catch {
    // No problem document: a proxy's page, say.
  }
  return new Refused(reply.status, detail);
}

async function send(path, token, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service cannot be reached. Is it still running?");
  }
  if (!reply.ok) throw await refusal(reply);
  return reply;
}

async function getJson(path, token) {
  return (await send(path, token, {})).json();
}

/** Post a value, or a text that is JSON already. */
async function postJson(path, token, value, signal) {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  const headers = { "Content-Type": "application/json" };
  return (await send(path, token, { method: "POST", headers, body, signal })).json();
}

/** Yield the events of a stream as {name, data}. */
async function* streamed(path, token, value, signal) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify(value);
  const reply = await send(path, token, { method: "POST", headers, body, signal });
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value: bytes } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(bytes, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
      if (done) return;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Refused) throw error;
    throw new Refused(0, "The connection to the service broke off.");
  }
}

/** An event's block of lines; null where it is a comment. */
function parsed(block) {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return name ? { name, data: JSON.parse(data) } : null;
}

export { Refused, getJson, postJson, streamed };
