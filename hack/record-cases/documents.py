"""Values by dotted paths, and values put into texts."""

import re


def fill(node, names):
    """Puts saved values where a case says {name}; {pad:N} is N letters; other braces stay."""
    if isinstance(node, str):
        return re.sub(r"\{(\w+(?::\w+)?)\}", lambda found: named(found, names), node)
    if isinstance(node, dict):
        return {fill(key, names): fill(value, names) for key, value in node.items()}
    return [fill(item, names) for item in node] if isinstance(node, list) else node


def named(found, names):
    kind, _, size = found[1].partition(":")
    if kind == "pad" and size.isdigit():
        return "x" * int(size)
    return str(names.get(found[1], found[0]))


def lookup(node, path):
    """The value at a dotted path (numbers index lists), or None."""
    for part in path.split("."):
        if isinstance(node, list) and part.lstrip("-").isdigit() and -len(node) <= int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            return None
    return node


def cut(document, paths):
    """Only the values at these paths; all of the document if there are none."""
    return {path: lookup(document, path) for path in paths} if paths else document


def move(node, source, target):
    """Moves a value to another dotted path, if it is there; the maps on the way are made."""
    *parents, last = source.split(".")
    holder = lookup(node, ".".join(parents)) if parents else node
    if not isinstance(holder, dict) or last not in holder:
        return
    value = holder.pop(last)
    *parents, last = target.split(".")
    for part in parents:
        node = node.setdefault(part, {})
    node[last] = value


def merge(node, patch):
    """A JSON merge patch (RFC 7386): maps are merged, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(node) if isinstance(node, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
