"""The part of a CRD's specification that crosses, and the changes that are safe once objects are stored."""

from collections.abc import Sequence
from typing import Any

import pytest

from kube_envtest.apiserver.schemas import check
from syncer.api import Obj, Refused, Resource, Side
from syncer.resources.definitions.schemas import KEEPS
from syncer.resources.definitions.versions import crossing, custom_resource, refuse_unsafe
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version

WEBHOOK = {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}}}


def versioned(name: str, schema: Obj | None = None, **flags: Any) -> Obj:
    """Return a version whose objects have one field, ``size``, unless the schema is given."""
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}
    return crd_version(name, **flags, schema={"openAPIV3Schema": {"properties": {"spec": schema or size}}})


NAMED_OTHERWISE = {"type": "object", "properties": {"length": {"type": "integer"}}}


def converted(*versions: Obj) -> Obj:
    return merged(crd("widgets.example.com", versions), WEBHOOK)


def served(spec: Obj) -> Sequence[str]:
    return [version["name"] for version in spec["versions"] if version["served"]]


# -- what crosses ----------------------------------------------------------------------------------


def test_specification_without_a_webhook_crosses_as_it_is() -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    v1 = versioned("v1", served=False, additionalPrinterColumns=[column], selectableFields=[{"jsonPath": ".spec.size"}])
    v2 = versioned("v2", NAMED_OTHERWISE, storage=True, subresources={"scale": scale})
    original = crd("widgets.example.com", [v1, v2])
    found = crossing(original, conversion="refuse")
    assert found.spec == original["spec"]
    assert (found.notes, found.stripped) == ((), False)


def test_defaults_of_an_api_server_are_added_before_writing() -> None:
    original = crd("widgets.example.com", spec={"conversion": None, "names": {"singular": None, "listKind": ""}})
    assert crossing(original, conversion="strip").spec == crd("widgets.example.com")["spec"]


def test_webhook_is_refused_if_configured() -> None:
    with pytest.raises(Refused, match="conversion: strip") as refused:
        crossing(converted(versioned("v1", storage=True)), conversion="refuse")
    assert refused.value.path == "spec.conversion"


def test_crd_of_one_served_version_stays_as_it_is_without_its_webhook() -> None:
    original = converted(versioned("v1", NAMED_OTHERWISE, served=False), versioned("v2", storage=True))
    found = crossing(original, conversion="strip")
    assert found.spec["conversion"] == {"strategy": "None"}
    assert found.spec["versions"] == original["spec"]["versions"]
    assert found.notes == ("its conversion webhook can't be reached from there and is left out",)


def test_versions_with_equivalent_schemas_are_all_served() -> None:
    described = {
        "type": "object",
        "description": "new",
        "properties": {"size": {"type": "integer", "description": "cm"}},
    }
    found = crossing(converted(versioned("v1"), versioned("v2", described, storage=True)), conversion="strip")
    assert served(found.spec) == ["v1", "v2"]


def test_field_that_is_called_description_is_no_documentation() -> None:
    described = {"type": "object", "properties": {"size": {"type": "integer"}, "description": {"type": "string"}}}
    found = crossing(converted(versioned("v1"), versioned("v2", described, storage=True)), conversion="strip")
    assert served(found.spec) == ["v2"]


def test_versions_of_a_stripped_webhook_are_served_if_they_are_like_the_stored_one() -> None:
    original = converted(versioned("v1", NAMED_OTHERWISE), versioned("v2", storage=True), versioned("v3"))
    found = crossing(original, conversion="strip")
    assert served(found.spec) == ["v2", "v3"]
    assert "v1 is not served there, as its schema differs from that of v2" in found.notes
    assert [version["served"] for version in original["spec"]["versions"]] == [True, True, True]


def test_crd_that_serves_only_converted_versions_is_refused() -> None:
    original = converted(versioned("v1", NAMED_OTHERWISE, storage=True, served=False), versioned("v2"))
    with pytest.raises(Refused, match="stored as v1, which isn't served"):
        crossing(original, conversion="strip")


# -- left from apiextensions/v1beta1 ---------------------------------------------------------------


def test_schemas_replace_preserve_unknown_fields() -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
    named = {"type": "object", "additionalProperties": {"type": "object"}}
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"metadata": {"type": "object"}},
    }
    root: Obj = {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {"list": inner, "named": named, "template": embedded}},
        },
    }
    original = crd("widgets.example.com", [crd_version("v1", storage=True)], spec={"preserveUnknownFields": True})
    original["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": root}
    found = crossing(original, conversion="strip").spec
    assert "preserveUnknownFields" not in found
    schema = found["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]["properties"]
    assert check(schema) == []
    open_schemas = (schema, schema["properties"]["spec"], spec["list"]["items"], spec["named"]["additionalProperties"])
    assert all(each[KEEPS] for each in open_schemas)
    assert KEEPS not in spec["list"]
    assert KEEPS not in spec["named"]
    assert schema["properties"]["metadata"] == root["properties"]["metadata"]
    assert spec["template"] == embedded | {KEEPS: True}
    assert KEEPS not in root


@pytest.mark.parametrize("schema", [None, {"openAPIV3Schema": {"properties": {"spec": {}}}}])
def test_schema_that_was_never_structural_accepts_anything(schema: Obj | None) -> None:
    documented = {"conditions": [{"type": "NonStructuralSchema", "status": "True"}]}
    original = crd("widgets.example.com", spec={"preserveUnknownFields": True}, status=documented)
    original["spec"]["versions"][0]["schema"] = schema
    found = crossing(original, conversion="strip")
    assert found.spec["versions"][0]["schema"] == {"openAPIV3Schema": {"type": "object", KEEPS: True}}
    assert found.notes == ("its schemas are not structural, so any field is accepted",)


def test_version_without_a_schema_takes_anything() -> None:
    original = crd("widgets.example.com", spec={"preserveUnknownFields": True})
    del original["spec"]["versions"][0]["schema"]
    [version] = crossing(original, conversion="strip").spec["versions"]
    assert version["schema"] == {"openAPIV3Schema": {"type": "object", KEEPS: True}}


# -- what a side that stores objects can take ------------------------------------------------------


def unsafe(new: Obj, live: Obj, stored: Sequence[str] = ("v1",), side: Side = Side.VIRTUAL) -> Refused | None:
    """Return why a CRD can't become what a new one is."""
    try:
        refuse_unsafe(crossing(new, conversion="strip"), merged(live, {"status": {"storedVersions": stored}}), side)
    except Refused as refused:
        return refused
    return None


OLD = crd("widgets.example.com", [crd_version("v1", storage=True)])


def test_versions_may_be_added_and_another_one_be_stored() -> None:
    new = crd("widgets.example.com", [versioned("v1"), versioned("v2", NAMED_OTHERWISE, storage=True)])
    assert unsafe(new, OLD) is None


def test_version_that_is_stored_must_not_go() -> None:
    refused = unsafe(crd("widgets.example.com", [crd_version("v2", storage=True)]), OLD, ("v1", "v2"), Side.HOST)
    assert refused
    assert refused.path == "spec.versions"
    assert "v1 is gone, but objects may be stored as v1 on the host" in refused.why
    assert "take v1 out of status.storedVersions" in refused.why


def test_version_that_is_stored_no_more_may_go() -> None:
    new = crd("widgets.example.com", [crd_version("v2", storage=True)])
    old = crd("widgets.example.com", [crd_version("v1"), crd_version("v2", storage=True)])
    assert unsafe(new, old, ("v2",)) is None


def test_objects_are_not_read_in_a_version_with_another_schema_without_the_webhook() -> None:
    new = converted(versioned("v1"), versioned("v2", NAMED_OTHERWISE, storage=True))
    refused = unsafe(new, OLD)
    assert refused
    assert "v2 is stored now, but objects may be stored as v1 in the virtual cluster" in refused.why
    assert unsafe(new, OLD, ("v2",)) is None
    assert unsafe(converted(versioned("v1"), versioned("v2", storage=True)), OLD) is None


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("spec.scope", {"scope": "Cluster"}),
        ("spec.names.kind", {"names": {"kind": "Gadget"}}),
        ("spec.names.plural", {"names": {"plural": "gadgets"}}),
    ],
)
def test_resource_of_a_crd_cannot_change(path: str, change: Obj) -> None:
    refused = unsafe(merged(OLD, {"spec": change}), OLD)
    assert refused
    assert refused.path == path
    assert "delete the CRD there" in refused.why


# -- what it defines -------------------------------------------------------------------------------


def test_custom_resources_are_listed_in_a_version_that_is_served() -> None:
    stored = crd("widgets.example.com", [crd_version("v1"), crd_version("v2", storage=True)], scope="Cluster")
    assert custom_resource(stored) == Resource("example.com/v2", "Widget", "widgets", namespaced=False)
    moving = crd("widgets.example.com", [crd_version("v1", storage=True, served=False), crd_version("v2")])
    assert custom_resource(moving) == Resource("example.com/v2", "Widget", "widgets")
