"""Every method, with ids of another tenant: as a stranger, and as a user of the same name."""

import asyncio
import json
import sys

import websockets

from websocket_kit import Client, methods

url = sys.argv[1].replace("http://", "ws://") + "/v1/ws"
stranger, namesake, session, run, approval = sys.argv[2:]
SECRETS = ["secret of main", "rm -r build", "Let me.", approval]


def requests():
    return [
        ("connect", {"token": "claw_0"}),
        ("chat.open", {"sessionKey": session}),
        ("chat.open", {"agentId": "of-main"}),
        ("chat.send", {"message": "x", "sessionKey": session}),
        ("chat.send", {"message": "x", "agentId": "of-main"}),
        ("chat.inject", {"message": "x", "sessionKey": session}),
        ("chat.abort", {"sessionKey": session}),
        ("chat.history", {"sessionKey": session}),
        ("chat.usage", {"sessionKey": session}),
        ("approvals.answer", {"approvalId": approval, "approve": True}),
        ("approvals.answer", {"approvalId": approval, "approve": False}),
        ("subscribe", {"sessionKey": session, "after": 0}),
    ]


async def main():
    tried = {method for method, _ in requests()} | {"approvals.list", "unsubscribe"}
    assert tried == set(methods()), "each method is tried"
    for key in [stranger, namesake]:
        async with websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
            client = Client(socket)
            for method, params in requests():
                if key == namesake and method in ("chat.open", "chat.send") and "sessionKey" in params:
                    continue  # A session of this name could be their own.
                answer = await client.ask(method, **params)
                if key == stranger or method not in ("chat.abort", "chat.usage"):
                    assert not answer["ok"], (method, params, answer)
                elif method == "chat.abort":
                    assert answer["payload"] == {"stopped": []}, answer
                else:
                    assert answer["payload"]["answers"] == 0, answer
                said = json.dumps(answer)
                assert not any(secret in said for secret in SECRETS if secret not in params.values()), answer
            own = (await client.ask("chat.send", message="one"))["payload"]["sessionKey"]
            answer = await client.ask("chat.usage", sessionKey=own, runId=run)
            assert not answer["ok"] and "there is no run" in answer["error"]["detail"], answer
            assert (await client.ask("approvals.list"))["payload"] == {"approvals": []}
            assert (await client.ask("unsubscribe", sessionKey=session))["payload"] == {"unsubscribed": False}
            # Streams of many sessions have their own tenant's alone.
            for topic in [{"tenant": True}, {"agentId": "default"}, {"agentId": "of-main"}, {"accessRequests": True}]:
                await client.ask("subscribe", after=0, **topic)
            await client.event(lambda frame: frame["event"] == "run" and frame["payload"]["state"] == "ended")
            await client.ask("approvals.list")
            heard = {frame.get("session") for frame in client.events}
            assert own in heard and session not in heard, heard
            # Both keys are of one tenant: the second hears of the sessions of the first.
            assert all(":direct:eve:" in other for other in heard - {own}), heard
            said = json.dumps(client.events)
            assert not any(secret in said for secret in SECRETS), said
    print("ok")


asyncio.run(main())
