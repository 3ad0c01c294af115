"""A WebSocket library of another language: a message into a run that goes on, and events of many sessions."""

import asyncio
import sys

import websockets

from websocket_kit import Client

url, key, admin = sys.argv[1].replace("http://", "ws://") + "/v1/ws", sys.argv[2], sys.argv[3]


def connect(token):
    return websockets.connect(url, additional_headers={"Authorization": f"Bearer {token}"})


def run(state):
    return lambda frame: frame["event"] == "run" and frame["payload"]["state"] == state


async def main():
    async with connect(key) as socket:
        client = Client(socket)
        opened = (await client.ask("chat.open"))["payload"]
        session = opened["sessionKey"]
        assert opened["last"] == 0 and opened["model"], opened
        refused = await client.ask("subscribe", tenant=True)
        assert not refused["ok"] and "administrators" in refused["error"]["detail"], refused
        refused = await client.ask("subscribe", sessionKey=session, agentId="default")
        assert not refused["ok"] and "give one of" in refused["error"]["detail"], refused
        followed = (await client.ask("subscribe", agentId="default"))["payload"]
        before = followed["feed"]
        sent = (await client.ask("chat.send", message="slow", sessionKey=session))["payload"]
        # The model thinks: what is said now is read before it is asked again.
        await client.event(run("began"))
        told = await client.ask("chat.inject", sessionKey=session, message="and this")
        assert told["ok"] and told["payload"]["runId"] == sent["runId"], told
        ended = await client.event(run("ended"))
        assert ended["session"] == session and ended["feed"] > before, ended
        said = (await client.ask("chat.history", sessionKey=session))["payload"]["messages"]
        words = [part.get("text", "") for message in said for part in message["content"]]
        assert "You said: slow\nand this" in words, words
        assert all(message["runId"] == sent["runId"] for message in said), said
        usage = (await client.ask("chat.usage", sessionKey=session, runId=sent["runId"]))["payload"]
        assert usage["answers"] == 2, usage
        refused = await client.ask("chat.inject", sessionKey=session, message="too late")
        assert not refused["ok"] and refused["error"]["code"] == "conflict", refused

    # Another connection gets what came since, once and in order, and another user sees none of it.
    async with connect(key) as socket:
        client = Client(socket)
        await client.ask("subscribe", agentId="default", after=before)
        await client.event(run("ended"))
        feeds = [frame["feed"] for frame in client.events if "feed" in frame]
        assert feeds == sorted(set(feeds)) and feeds[0] > before, feeds
        seqs = [frame["seq"] for frame in client.events if "seq" in frame]
        assert seqs == list(range(1, len(seqs) + 1)), seqs
    async with connect(admin) as socket:
        client = Client(socket)
        await client.ask("subscribe", tenant=True, after=0)
        event = await client.event(run("ended"))
        assert event["session"] == session, event
        await client.ask("unsubscribe", tenant=True)
        client.events.clear()
        await client.ask("subscribe", agentId="default", after=0)
        sent = (await client.ask("chat.send", message="hello"))["payload"]
        event = await client.event(lambda frame: True)
        assert event["session"] == sent["sessionKey"], "an administrator follows their own sessions with an agent"
    print("ok")


asyncio.run(main())
