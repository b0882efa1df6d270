"""Strict JSON schemas of Kubernetes' kinds, and of the custom kinds in the charts, for kubeconform.

They are made from the specification in the Kubernetes module of the control plane, and from the CRDs in the modules of
their projects. Nothing is accepted that they don't know. To check by hand what a chart makes:

    python tests/chart/kubernetes_schemas.py FOLDER
    helm dependency build charts/virtual-cluster
    helm template charts/virtual-cluster | kubeconform -strict -schema-location \\
      'FOLDER/{{ .Group }}-{{ .ResourceAPIVersion }}-{{ .ResourceKind }}.json'
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CONTROL_PLANE = Path(__file__).parent.parent.parent / "hack" / "controlplane"
#: CRDs of the custom kinds in the charts: each a module with its version, and the files in it.
CRDS = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": [
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ],
    "sigs.k8s.io/gateway-api@v1.4.0": ["config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml"],
}
#: The name of a kind's schema for kubeconform, to whom the core group's name is its version.
LOCATION = "{{ .Group }}-{{ .ResourceAPIVersion }}-{{ .ResourceKind }}.json"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_REFERENCE = "#/definitions/"


def write(folder: Path) -> None:
    """Write a schema for each kind into a folder.

    Raises:
        RuntimeError: A module can't be downloaded.
    """
    for (group, version, kind), schema in {**dict(_built_in()), **dict(_custom())}.items():
        (folder / f"{group}-{version}-{kind.lower()}.json").write_text(json.dumps(schema))


def _built_in() -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    version = re.search(r"k8s\.io/kubernetes (v\S+)", (CONTROL_PLANE / "go.mod").read_text())
    assert version
    file = _module(f"k8s.io/kubernetes@{version[1]}") / "api" / "openapi-spec" / "swagger.json"
    definitions = {name: _strict(each) for name, each in json.loads(file.read_text())["definitions"].items()}
    definitions[_QUANTITY] = {"type": ["string", "number"]}
    for name, definition in definitions.items():
        for each in definition.get("x-kubernetes-group-version-kind", ()):
            group_version_kind = each["group"] or each["version"], each["version"], each["kind"]
            yield group_version_kind, {"$ref": _REFERENCE + name, "definitions": _reached(name, definitions)}


def _custom() -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    for module, files in CRDS.items():
        folder = _module(module)
        for file in files:
            spec = yaml.load((folder / file).read_text(), Loader=yaml.CSafeLoader)["spec"]
            for version in spec["versions"]:
                schema = _strict(version["schema"]["openAPIV3Schema"])
                # The API server adds these, of which a CRD says nothing.
                schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
                schema["properties"]["metadata"] = {"type": "object"}
                yield (spec["group"], version["name"], spec["names"]["kind"]), schema


def _strict(schema: Any) -> Any:
    """Return a schema that refuses fields that it doesn't know."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _strict(each) for name, each in schema.items()}
    if schema.get("format") == "int-or-string":
        made = {"type": ["string", "integer"]}
    # `properties` may be a field of a kind as well: that of a CustomResourceDefinition.
    is_object = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
    if is_object and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def _reached(name: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions that one refers to, itself among them."""
    found: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found[current] = definitions[current]
            waiting += re.findall(rf'"{_REFERENCE}([^"]+)"', json.dumps(definitions[current]))
    return found


def _module(module: str) -> Path:
    """Return the folder of a Go module's sources, downloaded if need be."""
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=CONTROL_PLANE, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write(target)
