"""The gateway tells a client why it closes the connection."""

import asyncio
import json
import os
import signal
import sys
import urllib.request

import websockets

from websocket_kit import Client

http, key, other, admin, pid = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
url = http.replace("http://", "ws://") + "/v1/ws"


def connect(token):
    return websockets.connect(url, additional_headers={"Authorization": f"Bearer {token}"})


def edit(user, **change):
    headers = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    body = json.dumps(change).encode()
    request = urllib.request.Request(f"{http}/v1/users/{user}", body, headers, method="PATCH")
    urllib.request.urlopen(request).close()


async def closed(socket):
    """Waits until the gateway closes the connection; returns the code and the reason."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), 60)
    except websockets.ConnectionClosed as gone:
        return (gone.rcvd.code, gone.rcvd.reason) if gone.rcvd else None


async def main():
    async with connect(key) as socket:
        client = Client(socket)
        session = (await client.ask("chat.send", message="one"))["payload"]["sessionKey"]
        assert (await client.ask("subscribe", sessionKey=session))["ok"]
        edit("ann", role="viewer")
        assert await closed(socket) == (1008, "the rights of the key have changed; connect again")
    async with connect(other) as socket:
        assert (await Client(socket).ask("approvals.list"))["ok"]
        edit("ben", disabled=True)
        assert await closed(socket) == (1008, "the key is no longer valid")
    async with connect(admin) as socket, websockets.connect(url) as silent:
        assert (await Client(socket).ask("approvals.list"))["ok"]
        os.kill(pid, signal.SIGTERM)
        for one in [socket, silent]:
            assert await closed(one) == (1001, "the gateway is shutting down; connect again")
    print("ok")


asyncio.run(main())
