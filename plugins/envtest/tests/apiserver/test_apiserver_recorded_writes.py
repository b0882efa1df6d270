"""Changes at a real API server, recorded by `record_apiserver.py`: ours must have the same result."""

import json
from pathlib import Path
from typing import Any

import pytest

from kube_envtest.apiserver import patches
from kube_envtest.apiserver.apply import ApplyConflict, ApplyRefusedError, server_side_apply, track_update
from kube_envtest.apiserver.defaults import default
from kube_envtest.apiserver.prepare import prepare, prepare_update
from kube_envtest.apiserver.validation import validate_status_update, validate_update

Obj = dict[str, Any]

FOLDER = Path(__file__).parent / "recorded"


def chains() -> list[Any]:
    """Return the requests of `writes.json`, each with the object that the ones before it left behind."""
    out, live = [], dict[str, Obj]()
    for index, case in enumerate(json.loads((FOLDER / "writes.json").read_text())):
        before = live.get(case["name"])
        out.append(pytest.param(case, before, id=f"{case['kind']}-{index}-{case['op']}"))
        if "stored" in case:
            live[case["name"]] = case["stored"]
    return out


def timed(obj: Obj | None) -> Obj | None:
    """Give the recorded entries a time again; without one they would be older than any."""
    if obj is None:
        return None
    entries = [{**entry, "time": NOW} for entry in obj["metadata"].get("managedFields", ())]
    about = {**obj["metadata"], "uid": "u"} | ({"managedFields": entries} if entries else {})
    return {**obj, "metadata": about}


NOW = "2026-01-01T00:00:00Z"


def written(case: Obj, live: Obj | None) -> tuple[Obj, list[Obj]]:
    """Return what our parts, put together as the server does it, make of a request, and what they find wrong."""
    kind, manager, subresource = case["kind"], case["manager"], case.get("subresource", "")
    if case["op"] == "create" or (case["op"] == "apply" and live is None):
        return created(case)
    assert live is not None
    if case["op"] == "apply":
        force = case.get("force", False)
        config = {**case["body"], "metadata": {"namespace": "", **case["body"]["metadata"]}}
        new = server_side_apply(live, config, manager=manager, force=force, now=NOW, subresource=subresource)
        new = with_identity(default(kind, new), live)
    else:
        new = with_identity(default(kind, patched(case, live)), live)
        new = only(subresource, new, live)
        version = live["apiVersion"]
        new = track_update(live, new, manager=manager, api_version=version, now=NOW, subresource=subresource)
    new = only(subresource, prepare_update(kind, new), live)
    check = validate_status_update if subresource else validate_update
    return new, [error.cause for error in check(kind, live, new)]


def created(case: Obj) -> tuple[Obj, list[Obj]]:
    kind, sent = case["kind"], case["body"]
    if case["op"] == "apply":
        obj = default(kind, server_side_apply(None, sent, manager=case["manager"], force=False, now=NOW))
    else:
        obj = default(kind, sent)
        obj = track_update(None, obj, manager=case["manager"], api_version=obj["apiVersion"], now=NOW)
    obj["metadata"]["namespace"] = "recorded"
    return prepare(kind, obj, allocate_cluster_ip=lambda _: ["IP"]), []


def patched(case: Obj, live: Obj) -> Obj:
    match case["op"]:
        case "put":
            result = case["body"]
        case "json":
            result = patches.json_patch(live, case["body"])
        case "merge":
            result = patches.merge_patch(live, case["body"])
        case _:
            result = patches.strategic_merge(live, case["body"], resource=case["kind"])
    return dict(result)


def with_identity(new: Obj, live: Obj) -> Obj:
    about = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
    return {**new, "metadata": {**new["metadata"], **about}}


def only(subresource: str, new: Obj, live: Obj) -> Obj:
    """Return the object with what can't be changed by this way as it was."""
    if subresource:
        owners = {key: value for key, value in new["metadata"].items() if key == "managedFields"}
        return {**live, "metadata": {**live["metadata"], **owners}, "status": new.get("status", {})}
    return {**new, "status": live["status"]} if "status" in live else new


def outcome(case: Obj, live: Obj | None) -> Obj:
    """Return what the server would answer, in the form of the record."""
    try:
        new, causes = written(case, live)
    except ApplyConflict as conflict:
        return {"status": 409, "message": str(conflict), "causes": conflict.causes}
    except (patches.PatchError, ApplyRefusedError) as refusal:
        return {"status": refusal.code, "message": getattr(refusal, "message", str(refusal))}
    return {"status": 422, "causes": causes} if causes else {"stored": timeless(new)}


def timeless(obj: Obj) -> Obj:
    about = {key: value for key, value in obj["metadata"].items() if key != "uid"}
    entries = [{key: value for key, value in one.items() if key != "time"} for one in about.pop("managedFields", ())]
    entries.sort(key=lambda one: (one["operation"], one["manager"], one.get("subresource", "")))
    return {**obj, "metadata": about | ({"managedFields": entries} if entries else {})}


def first_lines(case: Obj) -> Obj:
    """Return a record with its causes in order, each without what follows the first line: a diff of Go structs."""
    causes = [{**one, "message": one["message"].split("\n")[0]} for one in case.get("causes", ())]
    causes.sort(key=lambda one: (one["field"], one["message"]))
    return {**case, "causes": causes} if causes else case


@pytest.mark.parametrize(("case", "before"), chains())
def test_a_write_has_the_outcome_recorded_on_the_real_server(case: Obj, before: Obj | None) -> None:
    ours = first_lines(outcome(case, timed(before)))
    assert ours == {key: value for key, value in first_lines(case).items() if key in ours}
    assert ("stored" in ours) == ("stored" in case)
