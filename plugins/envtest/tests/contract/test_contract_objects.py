"""create, get, update and delete: the stored objects, and the messages of refusals."""

from typing import Any

from contract_client import Api, config_map, maps

Obj = dict[str, Any]


def status_of(code: int, reason: str, message: str, details: Obj | None) -> Obj:
    out: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if details is not None:
        out["details"] = details
    return {**out, "reason": reason, "code": code}


def test_a_created_object_has_the_servers_metadata(api: Api, ns: str) -> None:
    made = api.make(maps(ns), config_map("a", x="1"))
    meta = made["metadata"]
    assert set(meta) == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields"}
    assert meta["namespace"] == ns
    assert api.get(maps(ns, "a")).json == made


def test_metadata_that_only_the_server_sets_is_overwritten(api: Api, ns: str) -> None:
    body = config_map("a")
    body["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 7,
        "selfLink": "/x",
    }
    meta = api.make(maps(ns), body)["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] > "2020-01-01"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & set(meta)


def test_missing_object(api: Api, ns: str) -> None:
    wanted = status_of(404, "NotFound", 'configmaps "a" not found', {"name": "a", "kind": "configmaps"})
    assert api.get(maps(ns, "a")).json == wanted
    answer = api.get(f"/apis/apps/v1/namespaces/{ns}/deployments/a")
    about = {"name": "a", "group": "apps", "kind": "deployments"}
    assert answer.json == status_of(404, "NotFound", 'deployments.apps "a" not found', about)


def test_existing_object(api: Api, ns: str) -> None:
    api.make(maps(ns), config_map("a"))
    answer = api.post(maps(ns), config_map("a"))
    wanted = status_of(409, "AlreadyExists", 'configmaps "a" already exists', {"name": "a", "kind": "configmaps"})
    assert answer.json == wanted


def test_outdated_version(api: Api, ns: str) -> None:
    made = api.make(maps(ns), config_map("a"))
    assert api.put(maps(ns, "a"), {**made, "data": {"x": "1"}}).status == 200
    answer = api.put(maps(ns, "a"), {**made, "data": {"x": "2"}})
    message = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert answer.json == status_of(409, "Conflict", message, {"name": "a", "kind": "configmaps"})


def test_update_without_version_is_unconditional(api: Api, ns: str) -> None:
    api.make(maps(ns), config_map("a", x="1"))
    answer = api.put(maps(ns, "a"), config_map("a", x="2"))
    assert (answer.status, answer["data"]) == (200, {"x": "2"})


def test_update_without_version_is_refused_for_kinds_that_require_one(api: Api, ns: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}
    api.make(path, lease)
    answer = api.put(f"{path}/a", lease)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == (
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


def test_update_of_a_missing_object(api: Api, ns: str) -> None:
    assert api.put(maps(ns, "a"), config_map("a")).status == 404
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a"
    assert api.put(path, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}).status == 201


def test_update_with_another_uid(api: Api, ns: str) -> None:
    made = api.make(maps(ns), config_map("a"))
    body = config_map("a")
    body["metadata"]["uid"] = "other"
    answer = api.put(maps(ns, "a"), body)
    message = (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
        f"Key: /registry/configmaps/{ns}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: other, UID in object meta: {made['metadata']['uid']}"
    )
    assert answer.json == status_of(409, "Conflict", message, {"name": "a", "kind": "configmaps"})


def test_update_with_another_name(api: Api, ns: str) -> None:
    api.make(maps(ns), config_map("a"))
    answer = api.put(maps(ns, "a"), config_map("b"))
    text = "the name of the object (b) does not match the name on the URL (a)"
    assert answer.json == status_of(400, "BadRequest", text, None)


def test_another_namespace_in_the_body(api: Api, ns: str) -> None:
    body = config_map("a")
    body["metadata"]["namespace"] = "other"
    text = "the namespace of the provided object does not match the namespace sent on the request"
    assert api.post(maps(ns), body).json == status_of(400, "BadRequest", text, None)


def test_an_update_without_changes_keeps_the_version(api: Api, ns: str) -> None:
    made = api.make(maps(ns), config_map("a", x="1"))
    assert api.put(maps(ns, "a"), config_map("a", x="1"))["metadata.resourceVersion"] == _version(made)
    assert api.put(maps(ns, "a"), made).json == made
    assert api.patch(maps(ns, "a"), {"data": {"x": "1"}}).json == made


def _version(obj: Obj) -> str:
    return str(obj["metadata"]["resourceVersion"])


def test_create_with_a_version(api: Api, ns: str) -> None:
    body = config_map("a")
    body["metadata"]["resourceVersion"] = "7"
    answer = api.post(maps(ns), body)
    assert (answer.status, answer["message"]) == (500, "resourceVersion should not be set on objects to be created")


def test_generated_names(api: Api, ns: str) -> None:
    first = api.make(maps(ns), {"metadata": {"generateName": "a-"}})["metadata"]
    second = api.make(maps(ns), {"metadata": {"generateName": "a-"}})["metadata"]
    assert first["name"] != second["name"]
    assert first["generateName"] == "a-"
    assert len(first["name"]) == len("a-") + 5
    long = api.make(maps(ns), {"metadata": {"generateName": "b" * 100}})["metadata"]
    assert long["name"].startswith("b" * 58)
    assert len(long["name"]) == 63


def test_a_name_is_needed(api: Api, ns: str) -> None:
    answer = api.post(maps(ns), {"metadata": {}})
    assert answer.status == 422
    assert answer["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


def test_bad_names_and_labels(api: Api, ns: str) -> None:
    for body in (
        {"metadata": {"name": "A_b"}},
        {"metadata": {"name": "a" * 254}},
        {"metadata": {"name": "a", "labels": {"x y": "1"}}},
        {"metadata": {"name": "a", "labels": {"x": "no spaces"}}},
        {"metadata": {"name": "a", "labels": {"x": "y" * 64}}},
        {"metadata": {"name": "a", "annotations": {"-": "1"}}},
        {"metadata": {"name": "a", "annotations": {"x": "y" * (256 * 1024)}}},
        {"metadata": {"name": "a", "finalizers": ["no spaces"]}},
    ):
        answer = api.post(maps(ns), body)
        assert (answer.status, answer["reason"]) == (422, "Invalid"), body


def test_the_words_for_a_bad_name(api: Api, ns: str) -> None:
    answer = api.post(maps(ns), config_map("A_b"))
    text = (
        'Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
        r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "metadata.name"}]
    about = {"name": "A_b", "kind": "ConfigMap", "causes": causes}
    assert answer.json == status_of(422, "Invalid", f'ConfigMap "A_b" is invalid: metadata.name: {text}', about)


def test_names_of_services_and_namespaces_are_labels(api: Api, ns: str) -> None:
    port = {"ports": [{"port": 80}]}
    path = f"/api/v1/namespaces/{ns}/services"
    assert api.post(path, {"metadata": {"name": "a.b"}, "spec": port}).status == 422
    assert api.post(path, {"metadata": {"name": "a" * 64}, "spec": port}).status == 422
    assert api.post("/api/v1/namespaces", {"metadata": {"name": "a.b"}}).status == 422


def test_dry_run_stores_nothing(api: Api, ns: str) -> None:
    answer = api.post(f"{maps(ns)}?dryRun=All", config_map("a"))
    assert answer.status == 201
    assert answer["metadata.uid"]
    assert api.get(maps(ns, "a")).status == 404
    made = api.make(maps(ns), config_map("a"))
    assert api.patch(f"{maps(ns, 'a')}?dryRun=All", {"data": {"x": "1"}})["data"] == {"x": "1"}
    assert api.delete(f"{maps(ns, 'a')}?dryRun=All").status == 200
    assert api.get(maps(ns, "a")).json == made


def test_field_manager(api: Api, ns: str) -> None:
    made = api.make(f"{maps(ns)}?fieldManager=me", config_map("a", x="1"))
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["me"]
    other = api.make(maps(ns), config_map("b", x="1"))
    assert [entry["manager"] for entry in other["metadata"]["managedFields"]] == ["contract"]


def test_wrong_kind_and_version(api: Api, ns: str) -> None:
    answer = api.post(maps(ns), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    assert answer.status == 400
    answer = api.post(maps(ns), {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert answer.status == 400
    assert api.post(maps(ns), b"{").status == 400
    assert api.post(maps(ns), b"[]").status == 400


def test_media_types(api: Api, ns: str) -> None:
    yaml = b"metadata: {name: a}\ndata: {x: one}\n"
    assert api.request("POST", maps(ns), yaml, "application/yaml").status == 201
    answer = api.request("POST", maps(ns), b"x", "text/plain")
    assert (answer.status, answer["reason"]) == (415, "UnsupportedMediaType")


def test_unknown_paths(api: Api, ns: str) -> None:
    missing = status_of(404, "NotFound", "the server could not find the requested resource", {})
    for path in ("/api/v1/foos", f"/api/v1/namespaces/{ns}/nodes", "/apis/apps/v1/foos", "/api/v2/pods"):
        assert api.get(path).json == missing, path
    for path in ("/apis/none/v1/x", "/none"):
        answer = api.get(path)
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), path


def test_methods_that_are_not_there(api: Api, ns: str) -> None:
    assert api.post("/api/v1/configmaps", config_map("a")).status == 405
    assert api.delete("/api/v1/namespaces").status == 405
    assert api.post(maps(ns, "a"), config_map("a")).status == 405


def test_too_large(api: Api, ns: str) -> None:
    answer = api.post(maps(ns), config_map("a", x="y" * (4 << 20)))
    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")


def test_partial_metadata(api: Api, ns: str) -> None:
    made = api.make(maps(ns), config_map("a", x="1"))
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    answer = api.get(maps(ns, "a"), accept=one)
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert answer.json == wanted
    listed = api.get(f"{maps(ns)}?fieldSelector=metadata.name=a", accept=many)
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [item["metadata"] for item in listed["items"]] == [made["metadata"]]
