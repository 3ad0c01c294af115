"""A key that acts for another user: named in the first frame, or in the header of the upgrade."""

import asyncio
import sys

import websockets

from websocket_kit import Client

url, key, other = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]


async def refused(code, **params):
    async with websockets.connect(url) as socket:
        answer = await Client(socket).ask("connect", **params)
        assert not answer["ok"] and answer["error"]["code"] == code and answer["error"]["hint"], answer


async def main():
    async with websockets.connect(url) as socket:
        client = Client(socket)
        answer = await client.ask("connect", token=key, user="root")
        assert answer["payload"] == {"tenant": "main", "user": "root", "role": "admin"}, answer
        opened = await client.ask("chat.open")
        assert ":http:direct:root:" in opened["payload"]["sessionKey"], opened
        again = await client.ask("connect", token=key, user="root")
        assert again["ok"], again
        for params in [{"token": key}, {"token": key, "user": "vera"}]:
            another = await client.ask("connect", **params)
            assert another["error"]["code"] == "conflict", another
    headers = {"Authorization": f"Bearer {key}", "x-clawsmith-user": "vera"}
    async with websockets.connect(url, additional_headers=headers) as socket:
        client = Client(socket)
        assert (await client.ask("approvals.list"))["ok"]
        sent = await client.ask("chat.send", message="one")
        assert "role `operator`" in sent["error"]["detail"], sent
    await refused("not_found", token=key, user="eve")
    await refused("not_found", token=key, user="nobody")
    # The key of a user without the scope. That user is disabled by now, or is refused.
    await refused("bad_key", token=other, user="vera")
    print("ok")


asyncio.run(main())
