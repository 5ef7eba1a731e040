#!/usr/bin/env python3
"""Writes the facts of Kubernetes' built-in kinds that simcluster serves, as one compact JSON file.

    generate.py KUBERNETES_MODULE > crates/simcluster-model/src/schema/kinds.json

KUBERNETES_MODULE is an unpacked k8s.io/kubernetes@VERSION from the Go module cache; its siblings
k8s.io/api, apimachinery and apiextensions-apiserver must lie next to it. Three sources are read:

* api/openapi-spec/v3: the structure of the kinds (what a running server answers at /openapi/v3/...),
* api/discovery: names, verbs and subresources, as a running server answers them,
* the Go type declarations: what OpenAPI does not say about their JSON form, namely which fields are
  printed although empty, which are pointers, and the Go names that decoding errors quote.

Every property of a definition carries `x-go`, a word with the form of the field in Go:
  opt     left out when empty (strings, numbers, booleans, lists, maps with omitempty)
  ptr     left out when absent only (pointers with omitempty)
  zero    always printed: the zero value of its type, or null for lists and maps
  null    always printed: pointers without omitempty
  value   a struct by value: always printed
  hidden  a struct by value that is left out when zero (omitzero)
and `x-go-type` where its Go type has a name of its own; `x-go-via` names the embedded structs that the
field comes from.
"""

import json
import re
import sys
from pathlib import Path

# group/version -> kinds' plurals, in the order of a real server's groups.
SERVED = {
    "v1": ["componentstatuses", "configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes",
           "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates",
           "replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services"],
    "apps/v1": ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"],
    "events.k8s.io/v1": ["events"],
    "authentication.k8s.io/v1": ["selfsubjectreviews", "tokenreviews"],
    "authorization.k8s.io/v1": ["localsubjectaccessreviews", "selfsubjectaccessreviews",
                                "selfsubjectrulesreviews", "subjectaccessreviews"],
    "autoscaling/v2": ["horizontalpodautoscalers"],
    "autoscaling/v1": ["horizontalpodautoscalers"],
    "batch/v1": ["cronjobs", "jobs"],
    "certificates.k8s.io/v1": ["certificatesigningrequests"],
    "networking.k8s.io/v1": ["ingressclasses", "ingresses", "networkpolicies"],
    "policy/v1": ["poddisruptionbudgets"],
    "rbac.authorization.k8s.io/v1": ["clusterrolebindings", "clusterroles", "rolebindings", "roles"],
    "storage.k8s.io/v1": ["storageclasses"],
    "admissionregistration.k8s.io/v1": ["mutatingwebhookconfigurations",
                                        "validatingwebhookconfigurations"],
    "apiextensions.k8s.io/v1": ["customresourcedefinitions"],
    "scheduling.k8s.io/v1": ["priorityclasses"],
    "coordination.k8s.io/v1": ["leases"],
    "discovery.k8s.io/v1": ["endpointslices"],
}

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Definitions that are no served kind's but that paths of served kinds speak of.
EXTRA = [META + "DeleteOptions", META + "Status", META + "ListMeta",
         "io.k8s.api.autoscaling.v1.Scale", "io.k8s.api.policy.v1.Eviction",
         "io.k8s.api.core.v1.Binding", "io.k8s.api.authentication.v1.TokenRequest"]

# Definitions with a JSON form of their own: not decoded field by field.
OPAQUE = {
    META + "Time": "time", META + "MicroTime": "microtime", META + "Duration": "duration",
    META + "FieldsV1": "raw",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "raw",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "union",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "union",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "union",
}


class GoPackages:
    """The type declarations of the Go packages behind the definitions."""

    def __init__(self, modules):
        self.modules = modules
        self.cache = {}

    def directory(self, definition):
        path, _, name = definition.rpartition(".")
        for prefix, module in self.modules.items():
            if path.startswith(prefix):
                return module / path[len(prefix):].replace(".", "/"), name
        raise KeyError(definition)

    def package(self, directory):
        if directory not in self.cache:
            text = "".join(file.read_text() for file in sorted(directory.glob("*.go"))
                           if not re.search(r"_test\.go|zz_generated|generated\.", file.name))
            self.cache[directory] = Package(directory, text)
        return self.cache[directory]

    def struct(self, definition):
        directory, name = self.directory(definition)
        package = self.package(directory)
        return package, list(self.fields(package, name, []))

    def fields(self, package, name, via):
        """Yields (json name, go type, options, embedded structs on the way)."""
        for line in package.structs[name]:
            embedded = re.match(r'\*?([\w.]+)\s+`json:"([^"]*)"', line)
            named = re.match(r'(\w+)\s+(\S+)\s+`json:"([^"]*)"', line)
            if named:
                _, go_type, tag = named.groups()
            elif embedded:
                go_type, tag = embedded.groups()
            else:
                continue
            json_name, *options = tag.split(",")
            if json_name == "-":
                continue
            if not json_name:
                simple = go_type.rpartition(".")[2]
                if simple not in ("TypeMeta", "ListMeta"):
                    yield from self.fields(package, simple, via + [simple])
                continue
            yield json_name, go_type, options, via


class Package:
    def __init__(self, directory, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
        self.name = re.search(r"^package (\w+)", text, re.M).group(1)
        self.imports = dict(re.findall(r'^\s*(\w+) "(k8s\.io/[^"]+)"', text, re.M))
        for path in re.findall(r'^\s*"(k8s\.io/[^"]+)"', text, re.M):
            self.imports.setdefault(path.rpartition("/")[2], path)
        self.structs, self.named = {}, {}
        for name, body in re.findall(r"^type (\w+) struct \{(.*?)^\}", text, re.M | re.S):
            self.structs[name] = [line.strip() for line in body.splitlines() if line.strip()]
        for name in re.findall(r"^type (\w+) struct ?\{\}$", text, re.M):
            self.structs[name] = []
        for name, under in re.findall(r"^type (\w+) ([\w\[\].*]+)$", text, re.M):
            if under not in ("struct", "interface"):
                self.named[name] = under

    def qualified(self, go_type):
        """The type as Go's reflection prints it."""
        for prefix in ("*", "[]", "map[string]"):
            if go_type.startswith(prefix):
                return prefix + self.qualified(go_type[len(prefix):])
        if go_type == "byte":
            return "uint8"
        if "." in go_type:
            alias, name = go_type.split(".")
            return self.imports.get(alias, alias).rpartition("/")[2] + "." + name
        return f"{self.name}.{go_type}" if go_type[0].isupper() else go_type


def strip(node):
    """The node without what simcluster does not read."""
    if isinstance(node, list):
        return [strip(one) for one in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if key == "description" and isinstance(value, str):
            continue
        if key in ("properties", "x-kubernetes-unions"):
            if key == "properties":
                out[key] = {name: strip(one) for name, one in value.items()}
            continue
        if key == "allOf" and len(value) == 1:
            out.update(strip(value[0]))
        elif key == "$ref":
            out[key] = value.rpartition("/")[2]
        else:
            out[key] = value if key == "default" else strip(value)
    return out


def refs(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


def derived(node, packages):
    """The Go type that a reader of the node would expect."""
    if "$ref" in node:
        directory, name = packages.directory(node["$ref"])
        return f"{packages.package(directory).name}.{name}"
    kind = node.get("type")
    if kind == "array":
        return "[]" + derived(node["items"], packages)
    if kind == "object":
        return "map[string]" + derived(node.get("additionalProperties", {}), packages)
    if kind == "string" and node.get("format") == "byte":
        return "[]uint8"
    return {"string": "string", "boolean": "bool", "number": "float64"}.get(
        kind, node.get("format", "int64"))


def annotate(node, go_type, package, packages):
    """Marks the node and the items below it whose Go type has a name."""
    bare = go_type.lstrip("*")
    if "$ref" in node or node.get("format") == "byte":
        return
    if node.get("type") == "array" and bare.startswith("[]"):
        annotate(node["items"], bare[2:], package, packages)
    elif node.get("type") == "object" and bare.startswith("map["):
        inner = bare[bare.index("]") + 1:]
        if "additionalProperties" in node:
            annotate(node["additionalProperties"], inner, package, packages)
    actual = package.qualified(bare)
    expected = node.get("x-go-type") or derived(node, packages)
    if actual != expected and not bare.startswith(("[]", "map[")):
        node["x-go-type"] = actual


def form(node, go_type, options):
    """The word for `x-go`."""
    if go_type.startswith("*"):
        return "ptr" if "omitempty" in options else "null"
    if "$ref" in node:
        return "hidden" if "omitzero" in options else "value"
    return "opt" if "omitempty" in options else "zero"


def main():
    kubernetes = Path(sys.argv[1]).resolve()
    version = kubernetes.name.partition("@v1.")[2]
    beside = {name: kubernetes.parent / f"{name}@v0.{version}"
              for name in ("api", "apimachinery", "apiextensions-apiserver")}
    packages = GoPackages({f"io.k8s.{name}.": path for name, path in beside.items()})

    discovery = {"groups": [], "resources": {}}
    definitions, kinds = {}, {}
    wanted = list(EXTRA)
    for group_version, plurals in SERVED.items():
        prefix = "api__" if "/" not in group_version else "apis__"
        file = prefix + group_version.replace("/", "__")
        resources = json.loads((kubernetes / f"api/discovery/{file}.json").read_text())["resources"]
        discovery["resources"][group_version] = [
            one for one in resources if one["name"].partition("/")[0] in plurals]
        openapi = kubernetes / f"api/openapi-spec/v3/{file}_openapi.json"
        schemas = json.loads(openapi.read_text())["components"]["schemas"]
        for name, schema in schemas.items():
            definitions.setdefault(name, strip(schema))
        for one in discovery["resources"][group_version]:
            if "/" in one["name"]:
                continue
            for name, schema in schemas.items():
                for gvk in schema.get("x-kubernetes-group-version-kind", []):
                    path = "/".join(filter(None, (gvk["group"], gvk["version"])))
                    if path == group_version and gvk["kind"] in (one["kind"], one["kind"] + "List"):
                        wanted.append(name)
                        if gvk["kind"] == one["kind"]:
                            kinds[f"{group_version}/{one['kind']}"] = name
    for group in json.loads((kubernetes / "api/discovery/apis.json").read_text())["groups"]:
        versions = [one["version"] for one in group["versions"]
                    if f"{group['name']}/{one['version']}" in SERVED]
        if versions:
            discovery["groups"].append({"name": group["name"], "versions": versions})

    reached = {}
    while wanted:
        name = wanted.pop()
        if name in reached:
            continue
        node = reached[name] = definitions[name]
        if name in OPAQUE:
            node["x-go"] = OPAQUE[name]
            if OPAQUE[name] == "union":
                wanted.append(name.rpartition(".")[0] + ".JSONSchemaProps")
            continue
        package, fields = packages.struct(name)
        struct = {json_name: rest for json_name, *rest in fields}
        for json_name, property_node in node.get("properties", {}).items():
            if json_name in ("apiVersion", "kind") and json_name not in struct:
                property_node["x-go"] = "opt"
                continue
            if json_name == "metadata" and json_name not in struct:
                raise KeyError((name, json_name))
            go_type, options, via = struct[json_name]
            annotate(property_node, go_type, package, packages)
            property_node["x-go"] = form(property_node, go_type, options)
            if via:
                property_node["x-go-via"] = ".".join(via)
        wanted.extend(refs(node))

    def compact(value):
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    out = sys.stdout
    out.write('{"version":' + compact("v1." + version) + ',\n"discovery":{"groups":')
    out.write(compact(discovery["groups"]) + ',"resources":{\n')
    out.write(",\n".join(f"{compact(gv)}:{compact(discovery['resources'][gv])}" for gv in SERVED))
    out.write('}},\n"kinds":' + compact(kinds) + ',\n"definitions":{\n')
    out.write(",\n".join(f"{compact(name)}:{compact(reached[name])}" for name in sorted(reached)))
    out.write("}}\n")


main()
