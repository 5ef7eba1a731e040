#!/usr/bin/env python3
"""Writes what `kubectl explain` says of Kubernetes' built-in kinds, as compressed JSON.

    documentation.py KUBERNETES_MODULE > crates/simcluster-model/src/builtin/documentation.json.gz

KUBERNETES_MODULE is an unpacked k8s.io/kubernetes@VERSION from the Go module cache; its
api/openapi-spec/swagger.json has the descriptions, which are the comments of the Go types.
The file maps the definitions of stable versions, and those that they refer to, to their texts by property;
the text of the definition itself is that of the empty property.
"""

import gzip
import json
import re
import sys
from pathlib import Path

UNSTABLE = re.compile(r"\.v\d+(alpha|beta)\d+\.")


def texts(definition):
    described = {"": definition, **definition.get("properties", {})}
    return {name: one["description"] for name, one in described.items() if one.get("description")}


def references(value):
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix("#/definitions/")
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def main():
    swagger = json.loads(Path(sys.argv[1], "api/openapi-spec/swagger.json").read_text())
    definitions = swagger["definitions"]
    wanted = [name for name in definitions if not UNSTABLE.search(name)]
    found = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = texts(definitions[name])
            wanted.extend(references(definitions[name]))
    written = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sys.stdout.buffer.write(gzip.compress(written.encode(), 9, mtime=0))


main()
