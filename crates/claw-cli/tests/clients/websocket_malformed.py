"""Frames that no client should send, each kind on a connection of its own; afterwards a good request works."""

import asyncio
import base64
import json
import os
import struct
import sys
from urllib.parse import urlsplit

import websockets

from websocket_kit import Client, methods

http, key = sys.argv[1], sys.argv[2]
url, place = http.replace("http://", "ws://") + "/v1/ws", urlsplit(http)
headers = {"Authorization": f"Bearer {key}"}
GOOD = json.dumps({"type": "req", "id": "1", "method": "approvals.list", "params": {}}).encode()


def connect():
    return websockets.connect(url, additional_headers=headers, max_size=None)


async def good():
    async with connect() as socket:
        assert (await Client(socket).ask("approvals.list"))["ok"]


def has_hint(answer):
    assert answer["ok"] is False and answer["error"]["hint"], answer
    return True


async def refused(sent):
    """The frame gets an error, and the connection lives on."""
    async with connect() as socket:
        client = Client(socket)
        await socket.send(sent)
        answer = await client.next()
        assert has_hint(answer) and answer["error"]["code"] in ("invalid_request", "not_found"), answer
        assert (await client.ask("approvals.list"))["ok"]


def frame(opcode, payload, fin=True, reserved=0, masked=True, length=None):
    length = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    mask = 0x80 if masked else 0
    if length < 126:
        head += bytes([mask | length])
    elif length < 1 << 16:
        head += bytes([mask | 126]) + struct.pack(">H", length)
    else:
        head += bytes([mask | 127]) + struct.pack(">Q", length)
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


async def raw(sent, ends=True):
    """Sends bytes after the upgrade. The gateway ends the connection, unless they are an incomplete frame."""
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    upgrade = [
        "GET /v1/ws HTTP/1.1", f"Host: {place.netloc}", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        f"Authorization: Bearer {key}", "", "",
    ]
    writer.write("\r\n".join(upgrade).encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert b" 101 " in head, head
    try:
        writer.write(sent)
        await writer.drain()
        if ends:
            while await asyncio.wait_for(reader.read(65536), 60):
                pass
    except ConnectionError:
        pass
    writer.close()


async def main():
    # Frames of bytes, of JSON that is none, and of JSON of another shape.
    await refused(b"\x00\x01\x02")
    await refused(GOOD)
    await refused(os.urandom(1000))
    for text in ["", "null", "1", '"x"', "[]", "{}", '["req", "1", "approvals.list", {}]', "\ufeff{}", "\u0000"]:
        await refused(text)
    depth = 100_000
    for text in ["[" * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth]:
        await refused(text)
        await refused('{"type": "req", "id": "1", "method": "chat.send", "params": ' + text + "}")
    # A frame of more than 1 MiB ends the connection.
    for size in [(1 << 20) + 1, 5 << 20]:
        try:
            async with connect() as socket:
                await socket.send("x" * size)
                while True:
                    await asyncio.wait_for(socket.recv(), 60)
        except (websockets.ConnectionClosed, ConnectionError):
            pass
        await good()
    # Parameters of another type, for each method.
    wrong = [1, 1.5, True, "x", [], [1, 2], ["x", "y", "z"], {"unknown": 1}, {"sessionKey": 1, "message": []}]
    async with connect() as socket:
        client = Client(socket)
        for method in methods():
            for params in wrong:
                await socket.send(json.dumps({"type": "req", "id": "1", "method": method, "params": params}))
                answer = await client.next()
                assert has_hint(answer) and answer["error"]["code"] == "invalid_request", (method, params, answer)
        for broken in [
            {"type": 1, "id": "1", "method": "approvals.list"},
            {"type": "req", "id": 1, "method": "approvals.list"},
            {"type": "req", "id": "1", "method": ["approvals.list"]},
            {"type": "req", "id": "1", "method": "approvals.list", "more": 1},
            {"type": "res", "id": "1", "method": "approvals.list"},
            {"id": "1", "method": "approvals.list"},
        ]:
            await socket.send(json.dumps(broken))
            assert has_hint(await client.next()), broken
        assert (await client.ask("approvals.list"))["ok"]
    # Bytes that are no frames of this protocol.
    for sent in [
        frame(1, GOOD, masked=False),
        frame(3, b"x"),
        frame(11, b"x"),
        frame(1, GOOD, reserved=4),
        frame(1, GOOD, reserved=7),
        frame(0, b"a continuation of nothing"),
        frame(1, b"{", fin=False) + frame(1, b"}"),
        frame(9, b"a ping in parts", fin=False),
        frame(9, b"x" * 126),
        frame(8, b"x"),
        frame(8, struct.pack(">H", 1005)),
        frame(8, struct.pack(">H", 1000) + b"\xff\xfe"),
        frame(1, b"\xff\xfe\xfd"),
        frame(1, b"\xe2\x82"),
        frame(1, b"\xed\xa0\x80"),
        frame(1, b"\xc0", fin=False) + frame(0, b"\xaf"),
        frame(1, b"", length=(1 << 63) - 1),
        frame(1, b"", length=1 << 40),
        frame(1, b"x" * 1000, fin=False) + b"".join(frame(0, b"x" * 60_000, fin=False) for _ in range(20)),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(1000),
        os.urandom(100_000),
    ]:
        await raw(sent)
        await good()
    # Frames that never end, and a client that leaves in the middle of one.
    for sent in [b"\x81", frame(1, b"{", length=1000), frame(1, GOOD, fin=False), frame(2, b"", fin=False)]:
        await raw(sent, ends=False)
    await good()
    print("ok")


asyncio.run(main())
