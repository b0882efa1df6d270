"""The ``values.schema.json`` of a chart, by which Helm refuses values that are misspelt or of
another type.

What a value takes follows from its default in ``values.yaml``: a mapping with keys has these and no
others, one without may have any. ``config`` has the schema of the daemon's configuration. The rest
is in :data:`FURTHER`.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
#: Columns of a line of the schema, but for long texts.
_WIDTH = 120
#: Mappings that may have other keys than by default.
_OPEN = ("annotations", "labels", "hard", "resources")
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_LABEL = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}
_DNS_NAME = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"}
_SIZE = {"type": ["string", "integer"], "pattern": "^[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?$"}
_STRINGS: Schema = {"additionalProperties": {"type": "string"}}
#: Flags: a list repeats one.
_FLAGS: Schema = {
    "patternProperties": {"^[a-z]": {"type": ["string", "number", "boolean", "array"]}},
    "additionalProperties": False,
}
_NAMED: Schema = {
    "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
}


def _exact(**properties: Schema) -> Schema:
    """Return the schema of a mapping of Kubernetes' own with these keys alone."""
    about: Schema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    return {"properties": {**about, **properties}, "additionalProperties": False}


#: Types that don't follow from the default, by the end of the value's path.
FURTHER: Mapping[str, Schema] = {
    "annotations": _STRINGS,
    "apiServer.audit.policy": _exact(
        rules={"type": "array", "items": {"type": "object", "required": ["level"]}},
        omitStages=_TEXTS,
        omitManagedFields={"type": "boolean"},
    ),
    "apiServer.authentication": _exact(jwt={"type": "array"}, anonymous={"type": "object"}),
    "apiServer.extraArgs": _FLAGS,
    "apiServer.names": {"type": "array", "items": {"type": "string", "pattern": r"^[^\s/]+$"}},
    "apiServer.serviceClusterIPRange": {
        "pattern": "^([0-9a-f:.]+/[0-9]{1,3}(,[0-9a-f:.]+/[0-9]{1,3})?)?$"
    },
    "backup.keep": {"minimum": 1},
    "backup.persistence.size": _SIZE,
    "cluster": {**_LABEL, "maxLength": 40},
    "commonLabels": _STRINGS,
    "controllerManager.extraArgs": _FLAGS,
    "etcd.extraArgs": _FLAGS,
    "etcd.persistence.size": _SIZE,
    "extraEnv": _NAMED,
    "extraVolumeMounts": _NAMED,
    "extraVolumes": _NAMED,
    "fleet.namespace": {**_LABEL, "maxLength": 63},
    "fullnameOverride": {**_LABEL, "maxLength": 36},
    "gateway.host": _DNS_NAME,
    "gateway.parentRefs": _NAMED,
    "gateway.port": {"minimum": 1, "maximum": 65535},
    "image.digest": {"pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "imagePullSecrets": _NAMED,
    "ingress.host": _DNS_NAME,
    "kubeconfig.server": {"pattern": r"^(https://[^\s/]+/?)?$"},
    "labels": _STRINGS,
    "leaderElection.shards": {"minimum": 1},
    "nodeSelector": _STRINGS,
    "plugins": {
        "items": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
                    "maxLength": 56,
                },
                "image": {"type": "string", "minLength": 1},
                "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
                "subPath": {"type": "string"},
                "initContainer": {
                    "type": ["object", "null"],
                    "properties": {"command": _TEXTS},
                    "additionalProperties": False,
                },
            },
            "required": ["name", "image"],
            "additionalProperties": False,
        },
    },
    "podAnnotations": _STRINGS,
    "podDisruptionBudget.maxUnavailable": {"type": ["integer", "string"]},
    "podLabels": _STRINGS,
    "podSecurity.audit": {"enum": ["", "privileged", "baseline", "restricted"]},
    "podSecurity.enforce": {"enum": ["", "privileged", "baseline", "restricted"]},
    "podSecurity.warn": {"enum": ["", "privileged", "baseline", "restricted"]},
    "replicas": {"minimum": 0},
    "resources": {
        "properties": {
            "requests": {"type": "object"},
            "limits": {"type": "object"},
            "claims": {"type": "array"},
        },
        "additionalProperties": False,
    },
    "restore.snapshot": {"pattern": "^([A-Za-z0-9][-A-Za-z0-9_.]*)?$"},
    "scheduler.extraArgs": _FLAGS,
    "service.externalTrafficPolicy": {"enum": ["Cluster", "Local"]},
    "service.loadBalancerSourceRanges": _TEXTS,
    "service.nodePort": {"type": ["integer", "null"], "minimum": 1, "maximum": 65535},
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "terminationGracePeriodSeconds": {"minimum": 0},
    "workloads.namespace": {**_LABEL, "maxLength": 63},
    # The spec of a ResourceQuota.
    "workloads.resourceQuota": {
        "properties": {
            "hard": {"type": "object"},
            "scopes": _TEXTS,
            "scopeSelector": {"type": "object"},
        },
    },
}
#: Types by the default value's.
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def values_schema(chart: Path, configuration: Mapping[str, Any]) -> Schema:
    """Return the schema of the values of a chart in a folder,
    for the schema of the configuration.
    """
    node = yaml.compose((chart / "values.yaml").read_text())
    lines = (chart / "values.yaml").read_text().splitlines()
    assert isinstance(node, yaml.MappingNode)
    schema = dict(_of_mapping(node, lines, ""))
    # Helm adds these: values for all charts of a release, and those of the library, which has none.
    added = {name: {"type": "object"} for name in ("global", "library")}
    schema["properties"] = {**schema["properties"], **added}
    about = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Values of the chart {chart.name}",
    }
    return {**about, **schema, "$defs": _definitions(configuration)}


def text_of(schema: Any, depth: int = 0) -> str:
    """Return a schema as JSON, in which each part that fits on a line has one."""
    line = json.dumps(schema, ensure_ascii=False)
    if not isinstance(schema, dict | list) or not schema or depth + len(line) <= _WIDTH:
        return line
    indent = " " * (depth + 1)
    if isinstance(schema, dict):
        brackets = "{}"
        items = [
            f"{indent}{json.dumps(name)}: {text_of(each, depth + 1)}"
            for name, each in schema.items()
        ]
    else:
        brackets = "[]"
        items = [f"{indent}{text_of(each, depth + 1)}" for each in schema]
    inside = ",\n".join(items)
    return f"{brackets[0]}\n{inside}\n{' ' * depth}{brackets[1]}"


def values_table(chart: Path) -> str:
    """Return the values of a chart in a folder as a table in Markdown: name, default, comment."""
    text = (chart / "values.yaml").read_text()
    node = yaml.compose(text)
    lines = text.splitlines()
    assert isinstance(node, yaml.MappingNode)
    return "\n".join(["| value | default | |", "|---|---|---|", *_rows(node, lines, "")])


def _rows(node: yaml.MappingNode, lines: list[str], path: str) -> Iterator[str]:
    for key, value in node.value:
        name = f"{path}{key.value}"
        if isinstance(value, yaml.MappingNode) and value.value and not _is_leaf(key.value):
            if sentences := _sentences(lines, key):
                yield f"| `{name}` | | {sentences} |"
            yield from _rows(value, lines, f"{name}.")
        else:
            default = yaml.safe_dump(
                yaml.safe_load(yaml.serialize(value)), default_flow_style=True, width=10_000
            )
            shown = default.removesuffix("\n").removesuffix("...").strip()
            yield f"| `{name}` | `{shown}` | {_sentences(lines, key)} |"


def _is_leaf(name: str) -> bool:
    return name in _OPEN


def _sentences(lines: list[str], key: yaml.Node) -> str:
    """Return a comment without the example in YAML that may follow it."""
    sentences, _, _ = _comment(lines, key.start_mark.line).partition("\n  - ")
    return sentences.replace("\n", " ").replace("|", "\\|").removesuffix(":")


def _of_mapping(node: yaml.MappingNode, lines: list[str], path: str) -> Iterator[tuple[str, Any]]:
    yield "type", "object"
    if not node.value or path.rpartition(".")[2] in _OPEN:
        return
    yield (
        "properties",
        {key.value: _of(key, value, lines, f"{path}.{key.value}") for key, value in node.value},
    )
    yield "additionalProperties", False


def _of(key: yaml.Node, node: yaml.Node, lines: list[str], path: str) -> Schema:
    sentences = _comment(lines, key.start_mark.line)
    schema: Schema = {"description": sentences} if sentences else {}
    name = path.rpartition(".")[2]
    if name == "config":
        return schema | {"$ref": "#/$defs/Configuration"}
    if name == "virtualClusters":
        return schema | {"type": "array", "items": {"$ref": "#/$defs/Entry"}}
    if name == "virtualClusterSecrets":
        return schema | {"type": "array", "items": {"$ref": "#/$defs/VirtualClusterSecrets"}}
    if isinstance(node, yaml.MappingNode):
        schema |= dict(_of_mapping(node, lines, path))
    else:
        schema |= _of_plain(node)
    for end, further in FURTHER.items():
        if path.endswith(f".{end}"):
            schema |= further
    return schema


def _of_plain(node: yaml.Node) -> Schema:
    value = yaml.safe_load(yaml.serialize(node))
    return {} if value is None else {"type": _TYPES[type(value)]}


def _comment(lines: list[str], line: int) -> str:
    """Return the comment above a line."""
    found: list[str] = []
    while line and lines[line - 1].strip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").removeprefix(" "))
    return "\n".join(found)


def _definitions(configuration: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the configuration's definitions, itself as ``Configuration``,
    and an ``Entry`` of ``virtualClusters``.
    """
    found = deepcopy(dict(configuration["$defs"]))
    for direction in ("ToHost", "FromHost", "Fake"):
        # Sections of plugins' kinds; the chart's template refuses them where there are no plugins.
        found[direction]["additionalProperties"] = {"type": "object"}
    whole = deepcopy(
        {name: configuration[name] for name in ("type", "additionalProperties", "properties")}
    )
    # The charts' templates refuse these, and name the value.
    whole["properties"] |= {name: {} for name in ("virtualClusters", "cluster", "virtual")}
    entry = deepcopy(found["VirtualCluster"])
    own = ("kubeconfig", "context")
    entry["properties"] = {
        name: each for name, each in entry["properties"].items() if name not in own
    }
    text = {"type": "string", "minLength": 1}
    secret = {
        "type": "object",
        "properties": {"name": text, "key": text},
        "additionalProperties": False,
    }
    entry["properties"]["kubeconfigSecret"] = {**secret, "required": ["name"]}
    return {
        name: _terse(each)
        for name, each in {**found, "Configuration": whole, "Entry": entry}.items()
    }


def _terse(schema: Any) -> Any:
    """Return a schema without what only explains it: `syncer config explain` does."""
    if isinstance(schema, list):
        return [_terse(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: each
        for name, each in schema.items()
        if name != "properties" and name not in _EXPLAINS
    }
    properties = schema.get("properties")
    terse = {name: _terse(each) for name, each in kept.items()}
    if properties is not None:
        terse["properties"] = {name: _terse(each) for name, each in properties.items()}
    return terse


_EXPLAINS = ("title", "description", "default", "examples")
