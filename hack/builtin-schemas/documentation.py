#!/usr/bin/env python3
"""Writes what `kubectl explain` says of Kubernetes' built-in kinds, as compressed JSON.

    documentation.py OPENAPI > crates/simcluster-model/src/builtin/documentation.json.gz

OPENAPI is a file with what a real server answers at /openapi/v2 (hack/kube-assets/up starts one): the
descriptions are the comments of the Go types, and what a property may be is listed beside.
The file maps the definitions of stable versions, and those that they refer to, to what is said of each
property: a list of its text and the values that it may have. The definition itself is the empty property.
"""

import gzip
import json
import re
import sys
from pathlib import Path

UNSTABLE = re.compile(r"\.v\d+(alpha|beta)\d+\.")


def texts(definition):
    described = {"": definition, **definition.get("properties", {})}
    said = {name: [one.get("description", ""), *one.get("enum", [])]
            for name, one in described.items()}
    return {name: one for name, one in said.items() if one != [""]}


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
    definitions = json.loads(Path(sys.argv[1]).read_text())["definitions"]
    wanted = [name for name in definitions
              if name.startswith("io.k8s.") and not UNSTABLE.search(name)]
    found = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = texts(definitions[name])
            wanted.extend(references(definitions[name]))
    written = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sys.stdout.buffer.write(gzip.compress(written.encode(), 9, mtime=0))


main()
