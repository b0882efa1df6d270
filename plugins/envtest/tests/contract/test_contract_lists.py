"""Lists: order, versions, pages, selectors."""

from typing import Any

import pytest
from contract_client import Api

Obj = dict[str, Any]


@pytest.fixture
def maps(api: Api, ns: str) -> str:
    """The path of a collection that holds a, b, c, d, e, with labels, beside kube-root-ca.crt."""
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for number, name in enumerate("abcde"):
        labels = {"half": "first" if name < "c" else "second", "n": str(number)}
        api.make(path, {"metadata": {"name": name, "labels": labels}})
    api.eventually(lambda: api.get(f"{path}/kube-root-ca.crt").status == 200)
    return path


def names(listed: Obj) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_items_are_ordered_and_go_without_kind(api: Api, maps: str) -> None:
    answer = api.get(maps)
    assert (answer["kind"], answer["apiVersion"]) == ("ConfigMapList", "v1")
    assert names(answer.json) == ["a", "b", "c", "d", "e", "kube-root-ca.crt"]
    assert not {"kind", "apiVersion"} & set(answer["items.0"])
    assert int(answer["metadata.resourceVersion"]) >= int(answer["items.4.metadata.resourceVersion"])


def test_order_over_namespaces(api: Api, ns: str) -> None:
    for name in (f"{ns}-a", ns + "0"):
        api.make("/api/v1/namespaces", {"metadata": {"name": name}})
        api.make(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "x", "labels": {"order": ns}}})
    api.make(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "x", "labels": {"order": ns}}})
    listed = api.get(f"/api/v1/configmaps?labelSelector=order={ns}").json
    assert [item["metadata"]["namespace"] for item in listed["items"]] == [f"{ns}-a", ns, ns + "0"]


def test_pages(api: Api, maps: str) -> None:
    first = api.get(f"{maps}?limit=2")
    assert names(first.json) == ["a", "b"]
    assert first["metadata.remainingItemCount"] == 4
    api.delete(f"{maps}/c")
    api.make(maps, {"metadata": {"name": "cc"}})
    second = api.get(f"{maps}?limit=2&continue={first['metadata.continue']}")
    assert names(second.json) == ["c", "d"], "a page shows what was there when the first was read"
    assert second["metadata.resourceVersion"] == first["metadata.resourceVersion"]
    last = api.get(f"{maps}?limit=2&continue={second['metadata.continue']}")
    assert names(last.json) == ["e", "kube-root-ca.crt"]
    assert "continue" not in last["metadata"]
    assert "remainingItemCount" not in last["metadata"]


def test_pages_of_a_selection_do_not_count(api: Api, maps: str) -> None:
    first = api.get(f"{maps}?limit=1&labelSelector=half=second")
    assert names(first.json) == ["c"]
    assert "remainingItemCount" not in first["metadata"]
    second = api.get(f"{maps}?limit=5&labelSelector=half=second&continue={first['metadata.continue']}")
    assert names(second.json) == ["d", "e"]


def test_bad_continue_token(api: Api, maps: str) -> None:
    answer = api.get(f"{maps}?limit=2&continue=nonsense")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("half=first", "ab"),
        ("half==first", "ab"),
        ("half!=first", "cde"),
        ("half in (first, second),n notin (1,2)", "ade"),
        ("half,!other", "abcde"),
        ("n>2", "de"),
        ("n<1", "a"),
        ("half=none", ""),
    ],
)
def test_label_selectors(api: Api, maps: str, selector: str, found: str) -> None:
    from urllib.parse import quote

    listed = names(api.get(f"{maps}?labelSelector={quote(selector)}").json)
    assert "".join(name for name in listed if len(name) == 1) == found


def test_bad_label_selector(api: Api, maps: str) -> None:
    answer = api.get(f"{maps}?labelSelector=a%20b")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


def test_field_selectors(api: Api, maps: str, ns: str) -> None:
    assert names(api.get(f"{maps}?fieldSelector=metadata.name=b").json) == ["b"]
    assert names(api.get(f"/api/v1/configmaps?fieldSelector=metadata.namespace={ns},metadata.name!=a").json)[0] == "b"
    answer = api.get(f"{maps}?fieldSelector=data.x=y")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"' in answer["message"]
    answer = api.get(f"/api/v1/namespaces/{ns}/pods?fieldSelector=spec.foo=y")
    assert (answer.status, "field label not supported: spec.foo" in answer["message"]) == (400, True)


def test_field_selectors_of_kinds(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/secrets"
    api.make(path, {"metadata": {"name": "a"}, "type": "example.com/x"})
    api.make(path, {"metadata": {"name": "b"}})
    assert names(api.get(f"{path}?fieldSelector=type=example.com/x").json) == ["a"]
    assert names(api.get(f"{path}?fieldSelector=type=Opaque").json) == ["b"]


def test_versions(api: Api, maps: str) -> None:
    first = api.get(f"{maps}?limit=1")
    version = first["metadata.resourceVersion"]
    api.make(maps, {"metadata": {"name": "aa"}})
    exact = api.get(f"{maps}?resourceVersion={version}&resourceVersionMatch=Exact&limit=2")
    assert names(exact.json) == ["a", "b"]
    assert exact["metadata.resourceVersion"] == version
    newer = api.get(f"{maps}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
    assert int(newer["metadata.resourceVersion"]) >= int(version)
    assert api.get(f"{maps}?resourceVersion=0").status == 200


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Nonsense&resourceVersion=1",
        "resourceVersion=nonsense",
        "sendInitialEvents=true",
    ],
)
def test_versions_that_make_no_sense(api: Api, maps: str, query: str) -> None:
    assert api.get(f"{maps}?{query}").status in (400, 422)


def test_the_words_for_a_version_match_without_version(api: Api, maps: str) -> None:
    answer = api.get(f"{maps}?resourceVersionMatch=Exact")
    assert answer.status == 422
    assert answer["message"] == (
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
        "unless resourceVersion is provided"
    )


def test_a_version_from_the_future(api: Api, maps: str) -> None:
    answer = api.get(f"{maps}?resourceVersion=99999999")
    assert (answer.status, answer["reason"]) == (504, "Timeout")
    assert answer["details.causes.0.reason"] == "ResourceVersionTooLarge"
    assert "Too large resource version: 99999999, current: " in answer["message"]


def test_delete_of_a_collection(api: Api, maps: str) -> None:
    answer = api.delete(f"{maps}?labelSelector=half=first")
    assert (answer.status, answer["kind"]) == (200, "ConfigMapList")
    assert names(answer.json) == ["a", "b"]
    assert names(api.get(maps).json)[0] == "c"
