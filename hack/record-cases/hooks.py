"""Webhooks: HTTPS servers on loopback that answer reviews as a case says, and remember them."""

import base64
import copy
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from documents import fill, lookup, merge, move

QUIET = 0.5  # seconds without a call after which no more are expected
LIMIT = 15.0  # seconds to wait for that


class Hooks:
    """The webhooks of one case, by name, and what they were asked since the log was cleared."""

    def __init__(self, spec, parallel, names):
        self.names, self.parallel = names, parallel
        self.lock, self.log, self.reviews = threading.Lock(), [], set()
        self.servers, self.addresses, self.authority = [], {}, None
        if not spec:
            return
        context, self.authority = certificate()
        names["ca"] = self.authority
        for name, rules in spec.items():
            rules = rules if isinstance(rules, list) else [rules]
            self.start(name, rules, context)
            names[f"hook:{name}"] = f"https://{self.addresses[name]}/{name}"

    def start(self, name, rules, context):
        if any(rule.get("refuse") for rule in rules):
            server = socket.socket()  # bound, so that nobody else gets the port, but not listening
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
        else:
            server = Listener(("127.0.0.1", 0), Handler)
            server.hook, server.rules, server.hooks = name, rules, self
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            port = server.server_address[1]
        self.servers.append(server)
        self.addresses[name] = f"127.0.0.1:{port}"

    def note(self, call):
        with self.lock:
            self.reviews.add(call["body"]["request"]["uid"])
            self.log.append({**call, "at": time.monotonic()})

    def clear(self):
        with self.lock:
            self.log = []

    def quiet(self):
        """Waits until no call has come for a while."""
        began = last = time.monotonic()
        while time.monotonic() < min(last + QUIET, began + LIMIT):
            time.sleep(0.05)
            with self.lock:
                last = max([began, *(call["at"] for call in self.log)])

    def calls(self, only=None):
        """The calls in the order in which they came; those of parallel webhooks in the case's order."""
        with self.lock:
            calls, run = [], []
            for call in [*(call for call in self.log if not only or call["hook"] in only), None]:
                if call and call["hook"] in self.parallel:
                    run.append(call)
                    continue
                calls += sorted(run, key=lambda one: self.parallel.index(one["hook"]))
                run = []
                calls += [call] if call else []
            return calls

    def stop(self):
        for server in self.servers:
            if isinstance(server, Listener):
                server.shutdown()
                server.server_close()
            else:
                server.close()


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that hangs up or does not trust the certificate is what some cases are about."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hooks = self.server.hooks
        hooks.note({"hook": self.server.hook, "path": self.path, "headers": dict(self.headers), "body": body})
        rule = fill(choose(self.server.rules, body, hooks.names), hooks.names)
        time.sleep(rule.get("delay", 0))
        self.close_connection = True
        if rule.get("hangup"):
            return
        text = (rule["text"] if "text" in rule else json.dumps(answer(rule, body))).encode()
        self.send_response_only(rule.get("status", 200))
        for name, value in {"Content-Type": "application/json", **rule.get("headers", {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments):
        pass


def choose(rules, body, names):
    """The first rule that applies, or the empty one."""
    for rule in rules:
        wanted, unwanted = (fill(rule.get(key, {}), names) for key in ("if", "unless"))
        if all(lookup(body, path) == value for path, value in wanted.items()) and not any(
            lookup(body, path) == value for path, value in unwanted.items()
        ):
            return rule
    return {}


def answer(rule, body):
    """The review that a rule answers: the plain answer, merged with the rule's own."""
    request, changes = body["request"], rule.get("answer", {})
    response = {"uid": request["uid"]}
    if body["kind"] == "ConversionReview":
        response["result"] = {"status": "Success"}
        response["convertedObjects"] = [
            convert(rule, item, request["desiredAPIVersion"]) for item in request["objects"]
        ]
    else:
        response["allowed"] = True
    review = merge({"apiVersion": body["apiVersion"], "kind": body["kind"], "response": response}, changes)
    given = changes.get("response") or {}
    if given.get("patch") is not None:
        patch = given["patch"] if isinstance(given["patch"], str) else json.dumps(given["patch"])
        review["response"]["patch"] = base64.b64encode(patch.encode()).decode()
        if "patchType" not in given:
            review["response"]["patchType"] = "JSONPatch"
    return review


def convert(rule, item, version):
    """One object at the version asked for: fields moved, then `each` merged into it."""
    item = {**copy.deepcopy(item), "apiVersion": version}
    for source, target in rule.get("move", {}).items():
        move(item, source, target)
    return merge(item, rule.get("each", {}))


def certificate():
    """A server's certificate for 127.0.0.1 that is its own authority, and that as a caBundle."""
    with tempfile.TemporaryDirectory() as folder:
        key, cert = pathlib.Path(folder, "key.pem"), pathlib.Path(folder, "cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=webhooks", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", cert],
            check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        return context, base64.b64encode(cert.read_bytes()).decode()
