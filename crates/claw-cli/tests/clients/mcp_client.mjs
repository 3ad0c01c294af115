// The official TypeScript client of MCP against our server, on standard streams or over HTTP.
import assert from "node:assert";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The package lies beside the tests' other clients, not beside this file.
const require = createRequire(`${process.env.CLAWSMITH_TEST_NODE_MODULES}/x.js`);
const load = async (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const [kind, upstream, ...rest] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: { HOME: process.env.HOME, PATH: process.env.PATH } })
    : new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } },
      });
const client = new Client({ name: "tests", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
assert(names.includes("datetime") && names.includes("write_file"), names.join());
const now = await client.callTool({ name: "datetime", arguments: { action: "now", timezone: "UTC" } });
assert(!now.isError, JSON.stringify(now));
const unknown = await client.callTool({ name: "no_such_tool", arguments: {} });
assert(unknown.isError && unknown.content[0].text.includes("no tool called"), JSON.stringify(unknown));
if (upstream) {
  const fine = await client.callTool({ name: `mcp_${upstream}_ok`, arguments: {} });
  assert.equal(fine.content[0].text, "fine");
}
await client.close();
console.log("ok");
