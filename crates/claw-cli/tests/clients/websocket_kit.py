"""A client of the gateway's WebSocket, for the tests in this directory."""

import asyncio
import json


class Client:
    def __init__(self, socket):
        self.socket, self.count, self.events = socket, 0, []

    async def ask(self, method, **params):
        self.count += 1
        sent = {"type": "req", "id": str(self.count), "method": method, "params": params}
        await self.socket.send(json.dumps(sent))
        while True:
            frame = json.loads(await asyncio.wait_for(self.socket.recv(), 60))
            if frame["type"] == "res" and frame["id"] == str(self.count):
                return frame
            self.events.append(frame)

    async def event(self, wanted):
        while True:
            for frame in self.events:
                if wanted(frame):
                    self.events.remove(frame)
                    return frame
            self.events.append(json.loads(await asyncio.wait_for(self.socket.recv(), 60)))
