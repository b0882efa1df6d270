"""Deletes: their answers, preconditions, finalizers, owners."""

from typing import Any

from contract_client import Api, maps

Obj = dict[str, Any]


def make(api: Api, ns: str, name: str = "a", **metadata: Any) -> Obj:
    made: Obj = api.make(maps(ns), {"metadata": {"name": name, **metadata}})["metadata"]
    return made


def test_a_deletion_is_answered_with_a_success_status(api: Api, ns: str) -> None:
    meta = make(api, ns)
    wanted = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": meta["uid"]},
    }
    answer = api.delete(maps(ns, "a"))
    assert (answer.status, answer.json) == (200, wanted)
    assert api.delete(maps(ns, "a")).status == 404


def test_some_kinds_answer_with_the_object(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/services"
    made = api.make(path, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    answer = api.delete(f"{path}/a")
    assert answer["kind"] == "Service"
    assert answer["metadata.uid"] == made["metadata"]["uid"]


def test_preconditions(api: Api, ns: str) -> None:
    meta = make(api, ns)
    answer = api.delete(maps(ns, "a"), {"preconditions": {"uid": "other"}})
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID '
        f"in record ({meta['uid']}). The object might have been deleted and then recreated"
    )
    answer = api.delete(maps(ns, "a"), {"preconditions": {"resourceVersion": "1"}})
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
    )
    assert answer["details"] == {"name": "a", "kind": "ConfigMap"}
    right = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    assert api.delete(maps(ns, "a"), right).status == 200


def test_finalizers_hold_an_object(api: Api, ns: str) -> None:
    make(api, ns, finalizers=["example.com/a", "example.com/b"])
    watch = api.watch(f"{maps(ns)}?fieldSelector=metadata.name=a")
    watch.next()
    answer = api.delete(maps(ns, "a"))
    assert (answer.status, answer["kind"]) == (200, "ConfigMap")
    assert answer["metadata.deletionTimestamp"]
    assert answer["metadata.deletionGracePeriodSeconds"] == 0
    again = api.delete(maps(ns, "a"))
    assert again.json == answer.json
    marked = watch.next()
    assert marked is not None
    assert (marked["type"], marked["object"]) == ("MODIFIED", answer.json)
    one = api.patch(maps(ns, "a"), {"metadata": {"finalizers": ["example.com/b"]}})
    assert one.status == 200
    last = api.patch(maps(ns, "a"), {"metadata": {"finalizers": []}})
    assert last.status == 200
    assert api.get(maps(ns, "a")).status == 404
    watch.next()
    gone = watch.next()
    assert gone is not None
    assert gone["type"] == "DELETED"


def test_an_object_being_deleted_gets_no_new_finalizer(api: Api, ns: str) -> None:
    make(api, ns, finalizers=["example.com/a"])
    api.delete(maps(ns, "a"))
    answer = api.patch(maps(ns, "a"), {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    assert answer.status == 422
    assert answer["message"] == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.com/b"}'
    )


def test_a_deletion_cannot_be_taken_back(api: Api, ns: str) -> None:
    make(api, ns, finalizers=["example.com/a"])
    api.delete(maps(ns, "a"))
    answer = api.patch(maps(ns, "a"), {"metadata": {"deletionTimestamp": None}})
    assert answer["metadata.deletionTimestamp"]


def test_generation_counts_the_deletion(api: Api, ns: str) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies"
    body = {"metadata": {"name": "a", "finalizers": ["example.com/a"]}, "spec": {"podSelector": {}}}
    assert api.make(path, body)["metadata"]["generation"] == 1
    assert api.delete(f"{path}/a")["metadata.generation"] == 2


def test_dependents_go_with_their_owner(api: Api, ns: str) -> None:
    owner = make(api, ns, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    make(api, ns, "child", ownerReferences=[reference])
    api.delete(maps(ns, "owner"), {"propagationPolicy": "Background"})
    api.eventually(lambda: api.get(maps(ns, "child")).status == 404)


def test_a_dependent_of_a_missing_owner_is_deleted(api: Api, ns: str) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "none"}
    make(api, ns, "child", ownerReferences=[reference])
    api.eventually(lambda: api.get(maps(ns, "child")).status == 404)


def test_orphans_stay(api: Api, ns: str) -> None:
    owner = make(api, ns, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    make(api, ns, "child", ownerReferences=[reference])
    answer = api.delete(maps(ns, "owner"), {"propagationPolicy": "Orphan"})
    assert answer["metadata.finalizers"] == ["orphan"]
    api.eventually(lambda: api.get(maps(ns, "owner")).status == 404)
    assert api.get(maps(ns, "child"))["metadata.ownerReferences"] is None


def test_foreground(api: Api, ns: str) -> None:
    owner = make(api, ns, "owner")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["uid"],
        "blockOwnerDeletion": True,
    }
    make(api, ns, "child", ownerReferences=[reference], finalizers=["example.com/a"])
    answer = api.delete(maps(ns, "owner"), {"propagationPolicy": "Foreground"})
    assert answer["metadata.finalizers"] == ["foregroundDeletion"]
    api.eventually(lambda: api.get(maps(ns, "child"))["metadata.deletionTimestamp"])
    assert api.get(maps(ns, "owner")).status == 200, "the owner waits for the child"
    api.patch(maps(ns, "child"), {"metadata": {"finalizers": None}})
    api.eventually(lambda: api.get(maps(ns, "owner")).status == 404)


def test_an_unknown_policy(api: Api, ns: str) -> None:
    make(api, ns)
    answer = api.delete(maps(ns, "a"), {"propagationPolicy": "Nonsense"})
    assert (answer.status, answer["reason"]) == (422, "Invalid")
