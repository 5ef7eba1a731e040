"""The API server: single answers, and streams of watch events over HTTP or a websocket."""

import base64
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import time

import yaml

TIMEOUT = 15.0  # seconds for one step
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
FRAMES = {TEXT: "text", BINARY: "binary"}


class Server:
    """One API server, reached with the credentials of a kubeconfig."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0].get("user") or {}
        self.secure, self.address = re.match(r"(https?)://([^/]+)", cluster["server"]).groups()
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def send(self, method, path, headers=None, body=None):
        """Sends one request; returns the open answer."""
        if self.secure == "https":
            connection = http.client.HTTPSConnection(self.address, timeout=TIMEOUT, context=self.context)
        else:
            connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT)
        connection.request(method, path, body=body, headers={**self.headers, **(headers or {})})
        return connection.getresponse()

    def json(self, method, path, body=None, headers=None):
        """Sends one JSON request; returns status and document."""
        headers = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
        answer = self.send(method, path, headers, None if body is None else json.dumps(body))
        raw = answer.read()
        return answer.status, json.loads(raw) if raw.startswith(b"{") else {}

    def open(self, method, path, headers, body=None, window=None, websocket=False):
        """Sends one request; returns the answer as a stream. `window` limits what the kernel buffers."""
        host, _, port = self.address.rpartition(":")
        sock = socket.socket()
        if window:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        sock.settimeout(TIMEOUT)
        sock.connect((host, int(port)))
        if self.secure == "https":
            sock = self.context.wrap_socket(sock, server_hostname=host)
        headers = {"Host": self.address, **self.headers, **headers}
        if websocket:
            key = base64.b64encode(os.urandom(16)).decode()
            headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                       "Sec-WebSocket-Key": key, **headers}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        sock.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        return Stream(sock)


class Stream:
    """An answer that is read as it comes. `end` says how it ended: `open` as long as it did not."""

    def __init__(self, sock):
        self.sock, self.raw, self.text = sock, b"", b""
        self.frames, self.end, self.chunk = [], "open", 0
        deadline = time.monotonic() + TIMEOUT
        head = self.take_line(deadline)
        self.status = int(head.split()[1])
        self.headers = http.client.HTTPMessage()
        while line := self.take_line(deadline):
            name, _, value = line.decode("latin-1").partition(":")
            self.headers[name] = value.strip()

    def getheader(self, name):
        values = self.headers.get_all(name)
        return ", ".join(values) if values else None

    def fill(self, deadline):
        """Receives some bytes; socket.timeout when the time is over, EOFError at the end."""
        self.sock.settimeout(max(deadline - time.monotonic(), 0.001))
        received = self.sock.recv(65536)
        if not received:
            raise EOFError
        self.raw += received

    def take(self, count, deadline):
        while len(self.raw) < count:
            self.fill(deadline)
        taken, self.raw = self.raw[:count], self.raw[count:]
        return taken

    def take_line(self, deadline):
        while b"\r\n" not in self.raw:
            self.fill(deadline)
        line, _, self.raw = self.raw.partition(b"\r\n")
        return line

    def read(self):
        """The whole body, for answers that are no streams."""
        deadline = time.monotonic() + TIMEOUT
        if length := self.headers.get("Content-Length"):
            return self.take(int(length), deadline)
        while self.end == "open":
            self.more(deadline)
        return self.text

    def more(self, deadline):
        """Moves what came next into `text`, or sees the end."""
        try:
            if self.status == 101:
                self.frame(deadline)
                return
            if not self.chunk:
                line = self.take_line(deadline)  # an empty one ends the chunk before
                self.chunk = int(line, 16) if line else 0
                self.end = "clean" if line and not self.chunk else "open"
                return
            if not self.raw:
                self.fill(deadline)
            taken = self.take(min(self.chunk, len(self.raw)), deadline)
            self.text, self.chunk = self.text + taken, self.chunk - len(taken)
        except (EOFError, ConnectionError, ssl.SSLEOFError):
            self.end = "cut"

    def frame(self, deadline):
        """Reads one websocket frame (RFC 6455); a server does not mask."""
        while len(self.raw) < 2 or len(self.raw) < 2 + self.extended():
            self.fill(deadline)
        size = self.raw[1] & 127
        skip = 2 + self.extended()
        if size == 126:
            size = struct.unpack(">H", self.raw[2:4])[0]
        elif size == 127:
            size = struct.unpack(">Q", self.raw[2:10])[0]
        while len(self.raw) < skip + size:
            self.fill(deadline)
        opcode, payload = self.raw[0] & 15, self.raw[skip:skip + size]
        self.raw = self.raw[skip + size:]
        if opcode == CLOSE:
            code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else None
            self.end = " ".join(["close", *([str(code)] if code else []), *filter(None, [payload[2:].decode()])])
        elif opcode == PING:
            self.sock.sendall(bytes([128 | PONG, 128 | len(payload)]) + bytes(4) + payload)  # masked by zeros
        else:
            self.frames.append(FRAMES.get(opcode, str(opcode)))
            self.text += payload

    def extended(self):
        return {126: 2, 127: 8}.get(self.raw[1] & 127, 0)

    def events(self, count, seconds):
        """Reads JSON documents, one a line, until `count` came or `seconds` passed without one."""
        events = []
        while len(events) < count:
            deadline = time.monotonic() + seconds
            try:
                while b"\n" not in self.text and self.end == "open":
                    self.more(deadline)
            except socket.timeout:
                break
            if b"\n" not in self.text:
                break
            line, _, self.text = self.text.partition(b"\n")
            events.append(json.loads(line))
        return events

    def close(self):
        self.sock.close()
