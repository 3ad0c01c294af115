// The official OpenAI client for Node against the gateway: chat, streaming, responses, errors.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(process.env.CLAWSMITH_TEST_NODE_MODULES + "/");
const { OpenAI } = require("openai");
const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

const models = await client.models.list();
assert(models.data.some((model) => model.id === "agent:default"));

const messages = [{ role: "user", content: "one" }];
const answer = await client.chat.completions.create({ model: "agent:default", messages });
assert.equal(answer.choices[0].message.content, "You said: one");

let words = "";
for await (const chunk of await client.chat.completions.create({ model: "agent:default", messages, stream: true })) {
  words += chunk.choices[0]?.delta?.content ?? "";
}
assert.equal(words, "You said: one");

const calls = await client.chat.completions.create({ model: "agent:default", messages: [{ role: "user", content: "list the files" }] });
assert(calls.choices[0].message.content.includes("there are"));

const first = await client.responses.create({ model: "agent:default", input: "two" });
assert.equal(first.output_text, "You said: two");
const second = await client.responses.create({ model: "agent:default", input: "three", previous_response_id: first.id });
assert.equal(second.output_text, "You said: three");

let said = "";
for await (const event of await client.responses.create({ model: "agent:default", input: "four", stream: true })) {
  if (event.type === "response.output_text.delta") said += event.delta;
}
assert.equal(said, "You said: four");

const made = await client.responses.create({ model: "agent:default", input: "list the files" });
assert(made.output.some((item) => item.type === "mcp_call" && item.name === "list_files"), JSON.stringify(made.output));

await assert.rejects(client.responses.create({ model: "agent:nobody", input: "x" }), (error) => error.status === 404 && error.code === "not_found");
const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "claw_" + "0".repeat(64), maxRetries: 0 });
await assert.rejects(stranger.models.list(), (error) => error.status === 401 && error.code === "bad_key");
console.log("ok");
