"""A client that cannot set headers, as in a browser: the key comes in the first frame, soon, and before anything else."""

import asyncio
import json
import sys

import websockets

from websocket_kit import Client

url, key, other = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]
headers = {"Authorization": f"Bearer {key}"}


async def closed(socket):
    """Waits until the gateway closes the connection; returns the code."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), 60)
    except websockets.ConnectionClosed as gone:
        return gone.rcvd.code if gone.rcvd else None


async def refused(first, code):
    async with websockets.connect(url) as socket:
        await socket.send(first)
        answer = json.loads(await asyncio.wait_for(socket.recv(), 60))
        assert answer["ok"] is False and answer["error"]["code"] == code, answer
        assert await closed(socket) == 1008


def frame(method, **params):
    return json.dumps({"type": "req", "id": "1", "method": method, "params": params})


async def main():
    async with websockets.connect(url) as socket:
        client = Client(socket)
        answer = await client.ask("connect", token=key)
        assert answer["ok"] and answer["payload"]["user"] == "ann", answer
        sent = await client.ask("chat.send", message="one")
        assert sent["ok"], sent
        again = await client.ask("connect", token=key)
        assert again["ok"], again
        another = await client.ask("connect", token=other)
        assert another["error"]["code"] == "conflict", another
        assert (await client.ask("approvals.list"))["ok"]

    # Nothing else is done before, and there is one attempt.
    await refused(frame("chat.send", message="one"), "no_key")
    await refused(frame("approvals.list"), "no_key")
    await refused(frame("connect", token="claw_0"), "bad_key")
    await refused(frame("connect", token=key[:-1] + ("a" if key[-1] != "a" else "b")), "bad_key")
    await refused(frame("connect"), "invalid_request")
    await refused(frame("connect", token=key, user="root"), "forbidden")
    await refused(frame("connect", token=key, role="owner"), "invalid_request")
    await refused("{", "invalid_request")
    await refused(b"\x00", "invalid_request")

    try:
        async with websockets.connect(url, origin="https://evil.example"):
            raise AssertionError("a page of another site was let in")
    except websockets.InvalidStatus as answer:
        assert answer.response.status_code == 403

    # A client that connects and says nothing is closed.
    async with websockets.connect(url) as socket:
        assert await closed(socket) == 1008

    # Many that say nothing are refused, and clients with a key are let in nevertheless.
    silent, status = [], None
    for _ in range(1000):
        try:
            silent.append(await websockets.connect(url))
        except websockets.InvalidStatus as answer:
            status = answer.response.status_code
            break
    assert status == 429, (status, len(silent))
    async with websockets.connect(url, additional_headers=headers) as socket:
        assert (await Client(socket).ask("approvals.list"))["ok"]
    for socket in silent:
        await socket.close()
    print("ok")


asyncio.run(main())
