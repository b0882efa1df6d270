"""Records what a real API server makes of the requests in `recorded/`, for `test_apiserver_recorded.py`.

Run it with `python tests/apiserver/record_apiserver.py`, where `kube_envtest.find` finds a control plane, to bring the
files up to a new version of Kubernetes, or after adding requests: in `creates.json` and `refusals.json` a new line
needs nothing but `{"sent": …}`; in `writes.json`, where each request builds on those before it, all keys up to
`status`.
"""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kube_envtest import ControlPlane

Obj = dict[str, Any]

FOLDER = Path(__file__).parent / "recorded"
NAMESPACE = "recorded"
MANAGER = "recorder"
#: What differs from run to run.
UNSTABLE = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")


def stable(obj: Obj) -> Obj:
    """Return an object without what differs from run to run."""
    out: Obj = json.loads(json.dumps(obj))
    for key in UNSTABLE:
        out["metadata"].pop(key, None)
    entries = out["metadata"].get("managedFields", [])
    for entry in entries:
        entry.pop("time", None)
    # The server orders them by time first.
    entries.sort(key=lambda one: (one["operation"], one["manager"], one.get("subresource", "")))
    if obj["kind"] == "Service":
        for port in out["spec"].get("ports", ()):
            port.pop("nodePort", None)
        if "clusterIP" in out["spec"] and out["spec"]["clusterIP"] != "None":
            out["spec"] |= {"clusterIP": "IP", "clusterIPs": ["IP"]}
    if obj["kind"] == "Job":
        return dict(json.loads(json.dumps(out).replace(obj["metadata"]["uid"], "UID")))
    out.get("status", {}).pop("lastPhaseTransitionTime", None)
    for condition in out.get("status", {}).get("conditions", ()) if obj["kind"] == "Pod" else ():
        condition["lastTransitionTime"] = None
    return out


def paths(plane: ControlPlane, kinds: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the path of each apiVersion and kind."""
    out = {}
    for version, kind in kinds:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in plane.request("GET", root)[1]["resources"]:
            if resource["kind"] == kind and "/" not in resource["name"]:
                where = f"{root}/namespaces/{NAMESPACE}" if resource["namespaced"] else root
                out[version, kind] = f"{where}/{resource['name']}"
    return out


def record(plane: ControlPlane, name: str, *, dry: bool) -> None:
    """Send every object of a file and write down the answers."""
    file = FOLDER / name
    cases = json.loads(file.read_text())
    at = paths(plane, {(case["sent"]["apiVersion"], case["sent"]["kind"]) for case in cases})
    lines = []
    for case in cases:
        sent = case["sent"]
        path = at[sent["apiVersion"], sent["kind"]]
        status, answer = plane.request("POST", f"{path}?fieldManager={MANAGER}" + ("&dryRun=All" if dry else ""), sent)
        result: Obj = {"stored": stable(answer)} if status < 300 else {"message": answer["message"]}
        if status == 422:
            result = {"causes": sorted(answer["details"]["causes"], key=lambda one: (one["field"], one["message"]))}
        lines.append("  " + json.dumps({"sent": sent, "status": status, **result}, ensure_ascii=False))
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")


#: How each kind of patch is sent.
CONTENT_TYPES = {
    "put": "application/json",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def record_writes(plane: ControlPlane) -> None:
    """Send the requests of `writes.json` one after the other and write down the answers."""
    file = FOLDER / "writes.json"
    cases = json.loads(file.read_text())
    at = paths(plane, {(version_of(case["kind"]), case["kind"]) for case in cases})
    lines = []
    for case in cases:
        case = {key: value for key, value in case.items() if key not in ("status", "stored", "message", "causes")}
        status, answer = send(plane, at[version_of(case["kind"]), case["kind"]], case)
        result: Obj = {"stored": stable(answer)} if status < 300 else {"message": answer["message"]}
        if "causes" in answer.get("details", {}):
            result["causes"] = answer["details"]["causes"]
        lines.append("  " + json.dumps({**case, "status": status, **result}, ensure_ascii=False))
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def version_of(kind: str) -> str:
    """Return the apiVersion of the kinds that `writes.json` speaks of."""
    return "apps/v1" if kind == "Deployment" else "v1"


def send(plane: ControlPlane, path: str, case: Obj) -> tuple[int, Obj]:
    """Send one request of `writes.json` as the administrator, with the content type of its kind."""
    query = f"?fieldManager={case['manager']}" + ("&force=true" if case.get("force") else "")
    if case["op"] == "create":
        return plane.request("POST", path + query, case["body"])
    tail = f"/{case['subresource']}" if case.get("subresource") else ""
    context = ssl.create_default_context(cafile=plane.ca_file)
    request = urllib.request.Request(
        f"{plane.url}{path}/{case['name']}{tail}{query}",
        data=json.dumps(case["body"]).encode(),
        method="PUT" if case["op"] == "put" else "PATCH",
        headers={"Content-Type": CONTENT_TYPES[case["op"]], "Authorization": f"Bearer {plane.token('daemon')}"},
    )
    try:
        with urllib.request.urlopen(request, context=context) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def main() -> None:
    """Start a plane, record the files, stop it."""
    with ControlPlane("recorder") as plane:
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        record(plane, "refusals.json", dry=True)
        plane.kubectl("create", "clusterrolebinding", "recorder", "--clusterrole=cluster-admin", "--user=daemon")
        record_writes(plane)
        record(plane, "creates.json", dry=False)


if __name__ == "__main__":
    main()
