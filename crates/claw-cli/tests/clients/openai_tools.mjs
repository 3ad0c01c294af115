// The official OpenAI client for Node with tools of its own, by its own runner and by hand.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(process.env.CLAWSMITH_TEST_NODE_MODULES + "/");
const { OpenAI } = require("openai");
const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const parameters = { type: "object", properties: { precise: { type: "boolean" } } };
const messages = [{ role: "user", content: "where am I" }];

const made = [];
const locate = { name: "locate", description: "Where the user is.", parameters, parse: JSON.parse, function: (args) => (made.push(args), "Quito") };
for (const stream of [false, true]) {
  const runner = client.chat.completions.runTools({ model: "agent:default", messages: [...messages], stream, tools: [{ type: "function", function: locate }] });
  assert.equal(await runner.finalContent(), "You are in Quito.");
}
assert.deepEqual(made, [{ precise: true }, { precise: true }]);

const tools = [{ type: "function", name: "locate", description: "Where the user is.", parameters, strict: false }];
const first = await client.responses.create({ model: "agent:default", input: "where am I", tools, tool_choice: "required" });
const call = first.output.find((item) => item.type === "function_call");
assert.deepEqual(JSON.parse(call.arguments), { precise: true });
const input = [{ type: "function_call_output", call_id: call.call_id, output: "Hanoi" }];
const second = await client.responses.create({ model: "agent:default", input, previous_response_id: first.id });
assert.equal(second.output_text, "You are in Hanoi.");
console.log("ok");
