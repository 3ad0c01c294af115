"""The official Python client of MCP, whose user is asked for approvals and for input.

Usage: mcp_asked_client.py URL KEY MODE ANSWER TOOL ARGUMENTS

MODE is `legacy` or a protocol version. ANSWER is `accept`, `decline` or `cancel`, or the values as JSON. Prints the text of the
result, after a line for each question.
"""

import asyncio
import json
import sys

import httpx2 as httpx
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

url, key, mode, answer, tool, arguments = sys.argv[1:]


async def asked(_context, params):
    print("asked:", params.message.replace("\n", " | "))
    if answer in ("decline", "cancel"):
        return types.ElicitResult(action=answer)
    # With values for a server's question, the call itself is approved first.
    is_approval = answer == "accept" or "Who are you?" not in params.message
    content = {"approve": True} if is_approval else json.loads(answer)
    return types.ElicitResult(action="accept", content=content)


async def main():
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=asked) as client:
            result = await client.call_tool(tool, json.loads(arguments))
            print("error:" if result.is_error else "result:", result.content[0].text)


asyncio.run(main())
