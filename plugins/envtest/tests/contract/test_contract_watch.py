"""Watches: their first events, later events, and their end."""

from typing import Any

from contract_client import Api

Obj = dict[str, Any]


def maps(ns: str) -> str:
    return f"/api/v1/namespaces/{ns}/configmaps"


def make(api: Api, ns: str, name: str, **labels: str) -> Obj:
    return api.make(maps(ns), {"metadata": {"name": name, "labels": {"ours": "yes", **labels}}})


OURS = "labelSelector=ours=yes"


def type_and_name(event: Obj | None) -> tuple[str, str]:
    assert event is not None
    return event["type"], event["object"]["metadata"]["name"]


def test_from_a_version_on(api: Api, ns: str) -> None:
    first = make(api, ns, "a")
    version = first["metadata"]["resourceVersion"]
    made = make(api, ns, "b")
    watch = api.watch(f"{maps(ns)}?resourceVersion={version}&{OURS}")
    assert watch.next() == {"type": "ADDED", "object": made}
    changed = api.patch(f"{maps(ns)}/b", {"data": {"x": "1"}}).json
    assert watch.next() == {"type": "MODIFIED", "object": changed}
    api.delete(f"{maps(ns)}/b")
    event = watch.next()
    assert event is not None
    assert event["type"] == "DELETED"
    meta = event["object"]["metadata"]
    assert int(meta["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
    assert {**meta, "resourceVersion": ""} == {**changed["metadata"], "resourceVersion": ""}


def test_version_that_is_yet_to_come_shows_nothing_before_it_comes(api: Api, ns: str) -> None:
    """As after etcd was restored from a snapshot: neither a change nor a bookmark nor an error."""
    future = int(make(api, ns, "a")["metadata"]["resourceVersion"]) + 100_000
    watch = api.watch(f"{maps(ns)}?resourceVersion={future}&allowWatchBookmarks=true&timeoutSeconds=3")
    make(api, ns, "b")
    assert watch.next() is None


def test_without_a_version_it_begins_with_the_existing_objects(api: Api, ns: str) -> None:
    make(api, ns, "a")
    make(api, ns, "b")
    for query in ("", "&resourceVersion=0"):
        watch = api.watch(f"{maps(ns)}?{OURS}{query}")
        assert [type_and_name(watch.next()), type_and_name(watch.next())] == [("ADDED", "a"), ("ADDED", "b")]


def test_an_object_that_enters_and_leaves_the_selection(api: Api, ns: str) -> None:
    made = make(api, ns, "a", color="red")
    version = made["metadata"]["resourceVersion"]
    watch = api.watch(f"{maps(ns)}?resourceVersion={version}&labelSelector=color=blue")
    other = api.watch(f"{maps(ns)}?resourceVersion={version}&labelSelector=color=red")
    blue = api.patch(f"{maps(ns)}/a", {"metadata": {"labels": {"color": "blue"}}}).json
    assert watch.next() == {"type": "ADDED", "object": blue}
    left = other.next()
    assert left is not None
    assert left["type"] == "DELETED"
    assert left["object"]["metadata"]["labels"]["color"] == "red", "it is shown as it was"
    assert left["object"]["metadata"]["resourceVersion"] == blue["metadata"]["resourceVersion"]
    red = api.patch(f"{maps(ns)}/a", {"metadata": {"labels": {"color": "red"}}}).json
    gone = watch.next()
    assert gone is not None
    assert (gone["type"], gone["object"]["metadata"]["labels"]["color"]) == ("DELETED", "blue")
    assert other.next() == {"type": "ADDED", "object": red}


def test_a_deletion_outside_the_selection_causes_no_event(api: Api, ns: str) -> None:
    version = make(api, ns, "a", color="red")["metadata"]["resourceVersion"]
    watch = api.watch(f"{maps(ns)}?resourceVersion={version}&labelSelector=color=blue")
    api.delete(f"{maps(ns)}/a")
    make(api, ns, "b", color="blue")
    assert type_and_name(watch.next()) == ("ADDED", "b")


def test_one_object(api: Api, ns: str) -> None:
    version = make(api, ns, "a")["metadata"]["resourceVersion"]
    watch = api.watch(f"{maps(ns)}?resourceVersion={version}&fieldSelector=metadata.name=b")
    make(api, ns, "c")
    make(api, ns, "b")
    assert type_and_name(watch.next()) == ("ADDED", "b")


def test_all_namespaces(api: Api, ns: str) -> None:
    version = make(api, ns, "a", test=ns)["metadata"]["resourceVersion"]
    watch = api.watch(f"/api/v1/configmaps?resourceVersion={version}&labelSelector=test={ns}")
    make(api, ns, "b", test=ns)
    assert type_and_name(watch.next()) == ("ADDED", "b")


def test_it_ends_when_asked_to(api: Api, ns: str) -> None:
    make(api, ns, "a")
    watch = api.watch(f"{maps(ns)}?{OURS}&timeoutSeconds=1")
    assert [type_and_name(event) for event in watch.rest()] == [("ADDED", "a")]


def test_a_bookmark_before_the_end(api: Api, ns: str) -> None:
    made = make(api, ns, "a")
    version = made["metadata"]["resourceVersion"]
    watch = api.watch(f"{maps(ns)}?allowWatchBookmarks=true&timeoutSeconds=5")
    events = watch.rest()
    assert [event["type"] for event in events[-1:]] == ["BOOKMARK"]
    bookmark = events[-1]["object"]
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("ConfigMap", "v1")
    assert int(bookmark["metadata"]["resourceVersion"]) >= int(version)
    assert "name" not in bookmark["metadata"]


def test_initial_events_end_with_a_bookmark(api: Api, ns: str) -> None:
    make(api, ns, "a")
    query = f"{OURS}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = api.watch(f"{maps(ns)}?{query}")
    assert type_and_name(watch.next()) == ("ADDED", "a")
    end = watch.next()
    assert end is not None
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    make(api, ns, "b")
    assert type_and_name(watch.next()) == ("ADDED", "b")


def test_initial_events_need_a_version_match(api: Api, ns: str) -> None:
    for query in ("sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact"):
        answer = api.get(f"{maps(ns)}?watch=true&{query}")
        assert (answer.status, answer["reason"]) == (422, "Invalid"), query


def test_bad_versions(api: Api, ns: str) -> None:
    answer = api.get(f"{maps(ns)}?watch=true&resourceVersion=x")
    assert answer.status == 500
    assert answer["message"] == 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'


def test_metadata_only(api: Api, ns: str) -> None:
    made = make(api, ns, "a")
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    watch = api.watch(f"{maps(ns)}?{OURS}", accept=accept)
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert watch.next() == {"type": "ADDED", "object": wanted}


def test_as_a_table_the_columns_come_once(api: Api, ns: str) -> None:
    make(api, ns, "a")
    make(api, ns, "b")
    watch = api.watch(f"{maps(ns)}?{OURS}", accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    first, second = watch.next(), watch.next()
    assert first is not None
    assert second is not None
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["object"]["columnDefinitions"]
    assert second["object"]["rows"][0]["cells"][0] == "b"
