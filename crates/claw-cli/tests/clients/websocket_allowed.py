"""A message by WebSocket that narrows the tools of its run."""

import asyncio
import sys

import websockets

from websocket_kit import Client

url, key = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2]


async def states(client, **more):
    """The states of the calls of a run."""
    session = (await client.ask("chat.open"))["payload"]["sessionKey"]
    sent = await client.ask("chat.send", message="list the files", sessionKey=session, **more)
    assert sent["ok"], sent
    await client.ask("subscribe", sessionKey=session, after=0)
    await client.event(lambda frame: frame["event"] == "run" and frame["payload"]["state"] == "ended")
    found = [frame["payload"]["state"] for frame in client.events if frame["event"] == "tool"]
    await client.ask("unsubscribe", sessionKey=session)
    client.events.clear()
    return found


async def main():
    async with websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
        client = Client(socket)
        narrowed = await states(client, allowedTools=["read_file"])
        assert narrowed == ["refused"], narrowed
        allowed = await states(client, allowedTools=["list_files"])
        assert "finished" in allowed and "refused" not in allowed, allowed
        many = [f"tool_{number}" for number in range(257)]
        refused = await client.ask("chat.send", message="list the files", allowedTools=many)
        assert not refused["ok"] and "257 entries" in refused["error"]["detail"], refused
        whole = await states(client)
        assert "finished" in whole, whole
    print("ok")


asyncio.run(main())
