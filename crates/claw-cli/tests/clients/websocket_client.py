"""A WebSocket library of another language against the gateway: requests, events, resuming, bad frames."""

import asyncio
import json
import random
import sys

import websockets

from websocket_kit import Client

url, key = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2]
headers = {"Authorization": f"Bearer {key}"}


def ended(frame):
    return frame["event"] == "run" and frame["payload"]["state"] == "ended"


async def main():
    async with websockets.connect(url, additional_headers=headers) as socket:
        client = Client(socket)
        first = (await client.ask("chat.send", message="one"))["payload"]
        session = first["sessionKey"]
        assert (await client.ask("subscribe", sessionKey=session, after=0))["ok"]
        last = await client.event(ended)
        seqs = [frame["seq"] for frame in client.events if "seq" in frame]
        assert seqs == sorted(seqs) and seqs[0] == 1, seqs
        said = (await client.ask("chat.history", sessionKey=session))["payload"]["messages"]
        assert [message["role"] for message in said] == ["user", "assistant"], said
        assert (await client.ask("approvals.list"))["payload"] == {"approvals": []}

    # Another connection goes on from where the first one was.
    async with websockets.connect(url, additional_headers=headers) as socket:
        client = Client(socket)
        await client.ask("subscribe", sessionKey=session, after=last["seq"])
        await client.ask("chat.send", message="two", sessionKey=session)
        event = await client.event(lambda frame: "seq" in frame)
        assert event["seq"] == last["seq"] + 1, event
        await client.event(ended)
        assert (await client.ask("unsubscribe", sessionKey=session))["payload"] == {"unsubscribed": True}

        for method, params, says in [
            ("nothing", {}, "there is no method"),
            ("chat.send", {"message": " "}, "the message is empty"),
            ("chat.send", {"message": "x", "user": "ann"}, "unknown field"),
            ("chat.history", {"sessionKey": "agent:default:http:direct:somebody"}, "there is no session"),
            ("subscribe", {"sessionKey": "cli:me"}, "there is no session"),
            ("approvals.answer", {"approvalId": "1", "approve": True}, "there is no approval"),
        ]:
            frame = await client.ask(method, **params)
            assert not frame["ok"] and says in frame["error"]["detail"], frame

        # Frames that mean nothing get an answer, and the connection lives on.
        source = random.Random(1)
        frames = int(sys.argv[3])
        for n in range(frames):
            junk = "".join(source.choice('{}[]",:0tnresqid\\\u1f980 ') for _ in range(source.randrange(60)))
            await socket.send(junk if n % 5 else json.dumps({"type": junk, "id": junk, "method": junk}))
            answer = json.loads(await asyncio.wait_for(socket.recv(), 60))
            assert answer["ok"] is False, answer
        assert (await client.ask("approvals.list"))["ok"]

    try:
        async with websockets.connect(url, additional_headers={"Authorization": "Bearer claw_0"}):
            raise AssertionError("let in without a key")
    except websockets.InvalidStatus as refused:
        assert refused.response.status_code == 401
    try:
        async with websockets.connect(url, additional_headers=headers, origin="https://evil.example"):
            raise AssertionError("a page of another site was let in")
    except websockets.InvalidStatus as refused:
        assert refused.response.status_code == 403
    print("ok")


asyncio.run(main())
