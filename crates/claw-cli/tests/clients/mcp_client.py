"""The official Python client of MCP against our server, on standard streams or over HTTP."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
import httpx2 as httpx


async def check(session, upstream):
    await session.initialize()
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert tools["datetime"].annotations.read_only_hint, tools["datetime"]
    assert "write_file" in tools, sorted(tools)
    now = await session.call_tool("datetime", {"action": "now", "timezone": "UTC"})
    assert not now.is_error, now
    unknown = await session.call_tool("no_such_tool", {})
    assert unknown.is_error and "no tool called" in unknown.content[0].text, unknown
    wrong = await session.call_tool("datetime", {"action": "dance"})
    assert wrong.is_error, wrong
    if upstream:
        assert f"mcp_{upstream}_ok" in tools, sorted(tools)
        fine = await session.call_tool(f"mcp_{upstream}_ok", {})
        assert fine.content[0].text == "fine", fine


async def main():
    kind, upstream, *rest = sys.argv[1:]
    if kind == "stdio":
        server = StdioServerParameters(command=rest[0], args=rest[1:])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await check(session, upstream)
    else:
        url, key = rest
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
            async with streamable_http_client(url, http_client=http) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    await check(session, upstream)
    print("ok")


asyncio.run(main())
