"""A WebSocket library of another language: requests for access to MCP servers, as the user and an administrator see them."""

import asyncio
import json
import sys

import websockets

url, key, admin = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]


async def subscribed(token, **params):
    socket = await websockets.connect(url, additional_headers={"Authorization": f"Bearer {token}"})
    sent = {"type": "req", "id": "1", "method": "subscribe", "params": {"accessRequests": True, **params}}
    await socket.send(json.dumps(sent))
    answer = json.loads(await asyncio.wait_for(socket.recv(), 60))
    return socket, answer


async def events(token, count):
    socket, answer = await subscribed(token, after=0)
    assert answer["ok"] and answer["payload"]["accessRequests"], answer
    got = [json.loads(await asyncio.wait_for(socket.recv(), 60)) for _ in range(count)]
    await socket.close()
    assert all(frame["event"] == "access_request" and frame["at"] for frame in got), got
    return [(frame["payload"]["state"], frame["payload"]["request"]["user"]) for frame in got]


async def main():
    assert await events(key, 2) == [("requested", "ann"), ("approved", "ann")]
    seen = await events(admin, 5)
    assert seen[:4] == [("requested", "bob"), ("requested", "ann"), ("rejected", "bob"), ("approved", "ann")], seen
    assert seen[4][0] == "requested", seen
    socket, refused = await subscribed(key, tenant=True)
    assert not refused["ok"] and "give one of" in refused["error"]["detail"], refused
    await socket.close()


asyncio.run(main())
print("ok")
