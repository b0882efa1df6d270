"""CustomResourceDefinitions themselves: names, versions, how they come and go."""

from contract_client import Api
from contract_crds import CRDS, definition, path, version, widget


def test_conditions_and_names(api: Api, group: str) -> None:
    crd = api.get(f"{CRDS}/widgets.{group}").json
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in crd["status"]["conditions"]}
    assert conditions == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    names = {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["gadgets"],
    }
    assert crd["status"]["acceptedNames"] == names
    assert crd["spec"]["names"] == names
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["metadata"]["generation"] == 1


def test_the_name_of_a_definition(api: Api) -> None:
    name = api.name("g") + ".example.com"
    body = definition(name, version("v1", storage=True))
    body["metadata"]["name"] = "other"
    answer = api.post(CRDS, body)
    assert (answer.status, answer["reason"]) == (422, "Invalid")


def test_discovery(api: Api, group: str) -> None:
    listed = api.get(f"/apis/{group}/v1").json
    found = {one["name"]: one for one in listed["resources"]}
    assert set(found) == {"widgets", "widgets/status", "widgets/scale"}
    assert found["widgets"]["shortNames"] == ["wd"]
    assert found["widgets"]["categories"] == ["gadgets"]
    assert found["widgets/scale"]["kind"] == "Scale"
    versions = api.get(f"/apis/{group}").json
    assert [one["version"] for one in versions["versions"]] == ["v2", "v1"]


def test_watches_end_with_the_definition(api: Api, ns: str, own: str) -> None:
    api.make(path(own, ns), widget(own))
    watch = api.watch(path(own, ns))
    assert api.delete(f"{CRDS}/widgets.{own}").status == 200
    assert [event["type"] for event in watch.rest()] == ["ADDED", "DELETED"]


def test_watches_end_when_the_definition_changes(api: Api, ns: str, own: str) -> None:
    watch = api.watch(path(own, ns))
    crd = api.get(f"{CRDS}/widgets.{own}").json
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "changed"
    assert api.put(f"{CRDS}/widgets.{own}", crd).status == 200
    assert watch.rest() == []


def test_no_longer_served(api: Api, ns: str, own: str) -> None:
    crd = api.get(f"{CRDS}/widgets.{own}").json
    crd["spec"]["versions"][1]["served"] = False
    assert api.put(f"{CRDS}/widgets.{own}", crd)["metadata.generation"] == 2
    api.eventually(lambda: api.get(path(own, ns, version="v2")).status == 404)
    api.eventually(lambda: api.get(path(own, ns)).status == 200)


def test_another_stored_version(api: Api, ns: str, own: str) -> None:
    made = api.make(path(own, ns), widget(own))
    crd = api.get(f"{CRDS}/widgets.{own}").json
    crd["spec"]["versions"][0]["storage"] = False
    crd["spec"]["versions"][1]["storage"] = True
    assert api.put(f"{CRDS}/widgets.{own}", crd)["status.storedVersions"] == ["v1", "v2"]
    api.eventually(lambda: api.get(path(own, ns, "a")).json == made)
    assert api.get(path(own, ns, "a", version="v2")).status == 200


def test_it_goes_with_its_instances(api: Api, ns: str, own: str) -> None:
    api.make(path(own, ns), widget(own))
    instance = widget(own, "b")
    instance["metadata"]["finalizers"] = ["example.com/a"]
    api.make(path(own, ns), instance)
    assert api.delete(f"{CRDS}/widgets.{own}").status == 200
    api.eventually(lambda: api.get(path(own, ns, "a")).status == 404)
    api.eventually(lambda: api.get(path(own, ns, "b"))["metadata.deletionTimestamp"])
    api.patch(path(own, ns, "b"), {"metadata": {"finalizers": None}})
    api.eventually(lambda: api.get(f"{CRDS}/widgets.{own}").status == 404)
    api.eventually(lambda: api.get(path(own, ns)).status == 404)


def test_a_kind_that_is_taken(api: Api, group: str) -> None:
    other = definition(group, version("v1", storage=True), plural="others")
    other["spec"]["names"] |= {"shortNames": [], "singular": "other"}
    api.make(CRDS, other)
    name = f"others.{group}"
    api.eventually(lambda: api.get(f"{CRDS}/{name}")["status.conditions"])
    conditions = {one["type"]: one for one in api.get(f"{CRDS}/{name}")["status.conditions"]}
    assert {kind: one["status"] for kind, one in conditions.items()} == {
        "NamesAccepted": "False",
        "Established": "False",
    }
    assert conditions["NamesAccepted"]["reason"].endswith("Conflict")
