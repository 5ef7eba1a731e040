"""Names for what differs from run to run, so that two runs of a case can be compared."""

import base64
import json
import re

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# The server's own end of a connection to a webhook.
CLIENT = re.compile(r"127\.0\.0\.1:\d+->")
# What ends a name that was made from generateName.
SUFFIX = r"[bcdfghjklmnpqrstvwxz2456789]{5}\b"


class Placeholders:
    """Names uids and resource versions in order of first appearance, for one case."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.uids, self.versions, self.prefixes = {}, {}, set()
        self.texts = {}  # text -> name: addresses of webhooks, their certificate
        self.reviews = set()  # the uids of reviews: nothing else ever has one of them
        self.me = None  # the recorder's own user, as the server calls it

    def text(self, value):
        for text, name in self.texts.items():
            value = value.replace(text, name)
        value = CLIENT.sub("<client>->", value.replace(self.namespace, "<ns>"))
        value = UID.sub(lambda found: self.uid(found[0]), value)
        for prefix in self.prefixes:
            value = re.sub(re.escape(prefix) + SUFFIX, prefix + "<generated>", value)
        return TIME.sub("<time>", value)

    def uid(self, value):
        if value in self.reviews:
            return "<review>"
        return self.uids.setdefault(value, f"<uid-{len(self.uids) + 1}>")

    def version(self, value):
        if not re.fullmatch(r"[1-9]\d*", str(value)):
            return value
        return self.versions.setdefault(value, f"<rv-{len(self.versions) + 1}>")

    def value(self, node, key=None):
        if isinstance(node, dict):
            return self.map(dict(node), key)
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if key == "resourceVersion":
            return self.version(node)
        if key == "continue" and node:
            return "<continue>"
        return self.text(node) if isinstance(node, str) else node

    def map(self, node, key):
        if key == "userInfo" and node == self.me:
            return "<me>"
        # A list's own version and a bookmark's move with every write to the cluster: not comparable.
        if isinstance(node.get("items"), list) and (node.get("metadata") or {}).get("resourceVersion"):
            node["metadata"] = {**node["metadata"], "resourceVersion": "<list-rv>"}
        if node.get("type") == "BOOKMARK":
            node["object"]["metadata"]["resourceVersion"] = "<bookmark-rv>"
        return {self.text(name): self.value(value, name) for name, value in node.items()}

    def body(self, raw, content_type):
        """The body of an answer: JSON as a value, protobuf in base64, the rest as a text."""
        if "json" in (content_type or ""):
            try:
                return self.value(json.loads(raw))
            except ValueError:
                pass
        if "protobuf" in (content_type or ""):
            return {"base64": base64.b64encode(raw).decode()}
        return self.text(raw.decode(errors="replace"))
