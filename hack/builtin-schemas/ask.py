#!/usr/bin/env python3
"""Asks a real API server what it makes of objects of built-in kinds, and writes the answers down.

    ask.py KUBECONFIG FILE

FILE is a JSON list of questions; each gets its `answer`. A question is
  {"in": "apps/v1/deployments", "body": {...}}                 a create
  {"in": ..., "old": {...}, "body": {...}}                      an update of what `old` made
  {"in": ..., "old": {...}, "body": {...}, "sub": "status"}     the same through a subresource
(`"text"` instead of `body`: sent as it is). Creates and updates are dry runs; `old` is made for real
and deleted afterwards. Of an object the answer is the object without what differs from run to run; of
a refusal it is {code, message, causes}.
"""

import json
import re
import ssl
import sys
import time
import urllib.error
import urllib.request


class Server:
    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        self.url = re.search(r"server: *[\"']?([^\s\"',}]+)", text).group(1)
        self.token = re.search(r"token: *[\"']?([^\s\"',}]+)", text).group(1)
        self.context = ssl._create_unverified_context()

    def send(self, method, path, text=None):
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("User-Agent", "ask")
        if text is not None:
            request.add_header("Content-Type", "application/json")
            request.data = text.encode()
        try:
            with urllib.request.urlopen(request, context=self.context) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def normal(status, body):
    if status >= 400:
        answer = {"code": status, "message": body["message"]}
        if body.get("details", {}).get("causes"):
            answer["causes"] = body["details"]["causes"]
        return answer
    body = json.loads(json.dumps(body).replace(body["metadata"].get("uid", "-"), "<uid>"))
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        body["metadata"].pop(field, None)
    return body


def main():
    server = Server(sys.argv[1])
    questions = json.load(open(sys.argv[2]))
    cluster_wide = ("nodes", "namespaces", "clusterroles", "clusterrolebindings", "ingressclasses",
                    "priorityclasses", "validatingwebhookconfigurations")
    for number, question in enumerate(questions):
        version, _, plural = question["in"].rpartition("/")
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = f"{root}/{plural}" if plural in cluster_wide else f"{root}/namespaces/ask/{plural}"
        text = question.get("text") or json.dumps(question["body"])
        if "old" not in question:
            status, body = server.send("POST", f"{place}?dryRun=All&fieldValidation=Strict", text)
        else:
            status, old = server.send("POST", place, json.dumps(question["old"]))
            if status >= 400:
                sys.exit(f"question {number}: {old}")
            if "text" not in question:
                body = dict(question["body"], metadata=dict(
                    question["body"]["metadata"],
                    resourceVersion=old["metadata"]["resourceVersion"]))
                text = json.dumps(body)
            own = f"{place}/{old['metadata']['name']}"
            target = own + (f"/{question['sub']}" if question.get("sub") else "")
            status, body = server.send("PUT", f"{target}?dryRun=All&fieldValidation=Strict", text)
            server.send("DELETE", f"{own}?gracePeriodSeconds=0")
            time.sleep(0.05)
        question["answer"] = normal(status, body)
    with open(sys.argv[2], "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(one) for one in questions) + "\n]\n")


main()
