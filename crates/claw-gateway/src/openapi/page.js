"use strict";
// Shows /openapi.json. Everything is written as text, never as markup.

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A schema with the schemas that it names in place, as far as that ends.
function resolved(schema, all, open = []) {
  if (Array.isArray(schema)) return schema.map((part) => resolved(part, all, open));
  if (schema === null || typeof schema !== "object") return schema;
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").pop();
    if (open.includes(name) || !all[name]) return { $ref: name };
    return resolved(all[name], all, [...open, name]);
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, all, open)]));
}

function block(title, schema, all) {
  const part = element("section");
  part.append(element("h3", title), element("pre", JSON.stringify(resolved(schema, all), null, 2)));
  return part;
}

function parameters(list) {
  const part = element("section");
  const table = element("table");
  for (const one of list) {
    const row = element("tr");
    const name = element("td");
    name.append(element("code", one.name));
    const kind = [one.in, one.schema.type ?? (one.schema.enum ? "one of " + one.schema.enum.join(", ") : ""), one.required ? "required" : ""];
    row.append(name, element("td", kind.flat().filter(Boolean).join(", ")), element("td", one.description ?? one.schema.description ?? ""));
    table.append(row);
  }
  part.append(element("h3", "Parameters"), table);
  return part;
}

function operation(method, path, entry, all) {
  const details = element("details", undefined, { id: entry.operationId });
  const summary = element("summary");
  summary.append(element("b", method.toUpperCase(), { class: "method" }), element("code", path), element("span", entry.summary));
  details.append(summary);
  details.dataset.words = [method, path, entry.summary, entry.description, entry.operationId].join(" ").toLowerCase();
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const inside = element("div", undefined, { class: "inside" });
    inside.append(element("p", entry.description));
    if (entry.parameters) inside.append(parameters(entry.parameters));
    const body = entry.requestBody?.content?.["application/json"]?.schema;
    if (body) inside.append(block("Body", body, all));
    for (const [status, reply] of Object.entries(entry.responses)) {
      const kinds = Object.entries(reply.content ?? {});
      if (kinds.length === 0) inside.append(element("h3", `${status}: ${reply.description}`));
      for (const [mime, kind] of kinds) inside.append(block(`${status}: ${reply.description} ${mime}`, kind.schema, all));
    }
    const frames = entry["x-websocket"];
    for (const [name, schema] of Object.entries(frames ?? {})) inside.append(block(`Frames: ${name}`, schema, all));
    details.append(inside);
  });
  return details;
}

async function show() {
  const answer = await fetch("/openapi.json");
  const api = await answer.json();
  const all = api.components.schemas;
  document.getElementById("version").textContent = api.info.version;
  const [groups, main] = [document.getElementById("groups"), document.getElementById("operations")];
  main.replaceChildren(element("p", api.info.description));
  for (const { name } of api.tags) {
    groups.append(element("a", name, { href: "#group-" + name }));
    const group = element("section");
    group.append(element("h2", name, { id: "group-" + name }));
    for (const [path, entries] of Object.entries(api.paths)) {
      for (const method of METHODS) {
        const entry = entries[method];
        if (entry?.tags.includes(name)) group.append(operation(method, path, entry, all));
      }
    }
    main.append(group);
  }
  document.getElementById("find").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of main.querySelectorAll("section")) {
      const found = [...group.querySelectorAll(":scope > details")].filter((details) => {
        details.hidden = !words.every((word) => details.dataset.words.includes(word));
        return !details.hidden;
      });
      if (group.querySelector(":scope > h2")) group.hidden = found.length === 0;
    }
  });
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

show().catch((error) => {
  document.getElementById("operations").replaceChildren(element("p", `openapi.json cannot be shown: ${error.message}`));
});
