"""Limits of a key hold for a connection that shows it in its first frame, and for each frame."""

import asyncio
import sys

import websockets

from websocket_kit import Client

url, key, rated = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]


async def main():
    async with websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as first:
        async with websockets.connect(url) as socket:
            refused = await Client(socket).ask("connect", token=key)
            assert refused["error"]["code"] == "too_many_websockets", refused
        assert (await Client(first).ask("approvals.list"))["ok"]
    async with websockets.connect(url) as socket:
        client = Client(socket)
        assert (await client.ask("connect", token=rated))["ok"]
        for _ in range(2):
            assert (await client.ask("approvals.list"))["ok"]
        refused = await client.ask("approvals.list")
        assert refused["error"]["code"] == "rate_limited", refused
    print("ok")


asyncio.run(main())
