#!/usr/bin/env python3
"""Writes the protobuf field numbers of the built-in kinds as one compact JSON file.

    generate.py API APIMACHINERY > crates/simcluster-model/src/codec/protobuf/fields.json

API and APIMACHINERY are unpacked k8s.io/api@VERSION and k8s.io/apimachinery@VERSION from the Go module
cache; their generated.proto files are read. Only definitions in builtin/kinds.json are kept.

A definition is a list of [number, name, type]. The name is the field's in JSON, empty where the message
is inlined there. A type is string, bytes, bool, int or double, `=definition` for messages, and has `[]`
before it in lists and `{}` in maps from strings.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCALARS = {"string": "string", "bytes": "bytes", "bool": "bool", "int32": "int", "int64": "int",
           "uint32": "int", "uint64": "int", "double": "double"}
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^\s*(optional|repeated)?\s*(map<string, [\w.]+>|[\w.]+) (\w+) = (\d+);", re.M)


def definition(package, name):
    full = name[1:] if name.startswith(".") else f"{package}.{name}"
    return "io.k8s." + full.removeprefix("k8s.io.").replace("apiextensions_", "apiextensions-")


def kind(package, name):
    return SCALARS.get(name) or "=" + definition(package, name)


def fields(package, body, properties):
    body = re.sub(r"//.*", "", body)
    # A few names differ from those in JSON in their case.
    in_json = {name.lower(): name for name in properties or {}}
    for label, written, name, number in FIELD.findall(body):
        if written.startswith("map<"):
            type_ = "{}" + kind(package, written[len("map<string, "):-1])
        else:
            type_ = ("[]" if label == "repeated" else "") + kind(package, written)
        name = in_json.get(name.lower(), name)
        inlined = properties is not None and name not in properties and type_.startswith("=")
        yield [int(number), "" if inlined else name, type_]


def main():
    kinds = json.loads((ROOT / "crates/simcluster-model/src/schema/kinds.json").read_text())
    definitions = kinds["definitions"]
    found = {}
    for module in map(Path, sys.argv[1:]):
        for path in sorted(module.rglob("generated.proto")):
            text = path.read_text()
            package = re.search(r"^package ([\w.]+);", text, re.M).group(1)
            for name, body in MESSAGE.findall(text):
                full = definition(package, name)
                properties = definitions.get(full, {}).get("properties")
                found[full] = list(fields(package, body, properties))
    wanted = [name for name in definitions if name in found]
    kept = {}
    while wanted:
        name = wanted.pop()
        if name in kept or name not in found:
            continue
        kept[name] = found[name]
        wanted += [type_.lstrip("[]{}")[1:] for _, _, type_ in found[name] if "=" in type_]
    lines = [f"{json.dumps(name)}:{json.dumps(kept[name], separators=(',', ':'))}"
             for name in sorted(kept)]
    print("{\n" + ",\n".join(lines) + "\n}")


main()
