"""A client that follows many sessions: its gateway ends, and it goes on at the next one from the number that it saw last."""

import asyncio
import json
import sys

import websockets

from websocket_kit import Client

url, key, kept = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]


def ended(frame):
    return frame["event"] == "run" and frame["payload"]["state"] == "ended"


async def begin(client):
    """Follows from the start, and keeps the number of an event in the middle of a run, and what came after it."""
    await client.ask("subscribe", agentId="default", after=0)
    await client.ask("chat.send", message="one")
    last = await client.event(ended)
    events = [frame for frame in client.events if "feed" in frame] + [last]
    seen, rest = events[1]["feed"], [frame["feed"] for frame in events[2:]]
    with open(kept, "w") as file:
        json.dump({"seen": seen, "rest": rest, "session": last["session"]}, file)


async def resume(client):
    with open(kept) as file:
        before = json.load(file)
    payload = (await client.ask("subscribe", agentId="default", after=before["seen"]))["payload"]
    assert payload["feed"] == before["seen"], payload
    last = await client.event(ended)
    found = [frame["feed"] for frame in client.events if "feed" in frame] + [last["feed"]]
    assert found == before["rest"] and last["session"] == before["session"], (found, before)
    # What comes new follows.
    client.events.clear()
    await client.ask("chat.send", message="two", sessionKey=before["session"])
    first = await client.event(lambda frame: "feed" in frame)
    assert first["feed"] > found[-1], first
    await client.event(ended)


async def main():
    async with websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
        await (resume if sys.argv[4] == "resume" else begin)(Client(socket))
    print("ok")


asyncio.run(main())
