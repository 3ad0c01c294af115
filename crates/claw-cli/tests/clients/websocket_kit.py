"""A client of the gateway's WebSocket, for the tests in this directory. Each frame is compared with the OpenAPI document."""

import asyncio
import functools
import json
import sys
import urllib.request

import jsonschema


@functools.cache
def document():
    with urllib.request.urlopen(sys.argv[1] + "/openapi.json") as answer:
        return json.load(answer)


def methods():
    """The names of all methods."""
    commands = document()["components"]["schemas"]["WebSocketRequest"]["allOf"][0]["oneOf"]
    return [command["properties"]["method"]["const"] for command in commands]


@functools.cache
def schema(name):
    whole = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    return jsonschema.Draft202012Validator(whole)


def check(name, frame):
    schema(name).validate(frame)


class Client:
    def __init__(self, socket):
        self.socket, self.count, self.events = socket, 0, []

    async def ask(self, method, **params):
        self.count += 1
        sent = {"type": "req", "id": str(self.count), "method": method, "params": params}
        await self.socket.send(json.dumps(sent))
        while True:
            frame = await self.next()
            if frame["type"] == "res" and frame["id"] == str(self.count):
                if frame["ok"]:
                    check("WebSocketRequest", sent)
                return frame
            self.events.append(frame)

    async def event(self, wanted):
        while True:
            for frame in self.events:
                if wanted(frame):
                    self.events.remove(frame)
                    return frame
            self.events.append(await self.next())

    async def next(self):
        frame = json.loads(await asyncio.wait_for(self.socket.recv(), 60))
        check("WebSocketResponse" if frame["type"] == "res" else "WebSocketEvent", frame)
        return frame
