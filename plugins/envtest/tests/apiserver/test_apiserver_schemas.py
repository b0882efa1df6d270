"""Schemas of custom resources: pruning, defaults, validation, and which schemas a CRD may have."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver import schemas

Obj = dict[str, Any]


def obj(**properties: Any) -> Obj:
    return {"type": "object", "properties": properties}


def array(items: Obj, **more: Any) -> Obj:
    return {"type": "array", "items": items, **more}


TEXT = {"type": "string"}
SPEC = obj(
    must=TEXT,
    short={"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a"},
    count={"type": "integer", "minimum": 1, "maximum": 10},
    above={"type": "integer", "minimum": 1, "exclusiveMinimum": True},
    on={"type": "boolean", "default": True},
    colour={"type": "string", "enum": ["red", "green"]},
    list=array(TEXT, minItems=1, maxItems=2),
    set=array(TEXT, **{"x-kubernetes-list-type": "set"}),
    byKey=array(
        {**obj(k=TEXT, v={"type": "string", "default": "x"}), "required": ["k"]},
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    ),
    map={"type": "object", "additionalProperties": obj(q=TEXT)},
    port={"x-kubernetes-int-or-string": True},
    open={**obj(known=obj(a=TEXT)), "x-kubernetes-preserve-unknown-fields": True},
    pod={"type": "object", "x-kubernetes-embedded-resource": True, **obj(spec=obj(a=TEXT))},
    null={"type": "string", "nullable": True, "default": "z"},
    when={"type": "string", "format": "date-time"},
    one={**obj(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    never={**obj(a=TEXT), "not": {"required": ["a"]}},
    deep={"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 3}}},
)
SCHEMA = schemas.compile(obj(spec={**SPEC, "required": ["must"]}, status=obj(phase=TEXT)))


def thing(**spec: Any) -> Obj:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"a": "b"}}, "spec": spec}


def pruned(**spec: Any) -> Obj:
    before = thing(**spec)
    result = SCHEMA.prune(before)
    assert before == thing(**spec)
    found: Obj = result["spec"]
    return found


def test_unknown_fields_are_pruned_and_metadata_stays() -> None:
    full = {**thing(must="x", unknown=1), "extra": 1}
    assert SCHEMA.prune(full) == thing(must="x")
    assert pruned(map={"k": {"q": "1", "r": "2"}}) == {"map": {"k": {"q": "1"}}}
    assert pruned(byKey=[{"k": "a", "z": 1}]) == {"byKey": [{"k": "a"}]}


def test_preserved_fields_stay_but_known_ones_are_still_pruned() -> None:
    assert pruned(open={"free": {"x": [1]}, "known": {"a": "1", "b": 2}}) == {
        "open": {"free": {"x": [1]}, "known": {"a": "1"}}
    }


def test_an_embedded_resource_keeps_its_type_and_metadata() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": "1", "b": 2}, "c": 3}
    assert pruned(pod=pod) == {
        "pod": {**{key: pod[key] for key in ("apiVersion", "kind", "metadata")}, "spec": {"a": "1"}}
    }


def test_defaults_are_filled_in_everywhere() -> None:
    full = SCHEMA.default(thing(must="x", byKey=[{"k": "a"}]))["spec"]
    assert full == {
        "must": "x",
        "byKey": [{"k": "a", "v": "x"}],
        "on": True,
        "null": "z",
        "deep": {"x": 3},
    }


def test_nulls_become_defaults_or_go_unless_they_are_allowed() -> None:
    full = SCHEMA.default(thing(must=None, on=None, null=None))["spec"]
    assert full == {"on": True, "null": None, "deep": {"x": 3}}


def test_defaults_are_not_shared_between_objects() -> None:
    first = SCHEMA.default(thing(must="x"))
    first["spec"]["deep"]["x"] = 99
    assert SCHEMA.default(thing(must="x"))["spec"]["deep"] == {"x": 3}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({}, ["spec.must: Required value"]),
        ({"must": 1}, ['spec.must: Invalid value: "integer": spec.must in body must be of type string: "integer"']),
        (
            {"must": "x", "short": "b"},
            ['spec.short: Invalid value: "b": spec.short in body should be at least 2 chars long'],
        ),
        ({"must": "x", "short": "bb"}, ["spec.short: Invalid value: \"bb\": spec.short in body should match '^a'"]),
        ({"must": "x", "short": "aaaaa"}, ["spec.short: Too long: may not be more than 4 bytes"]),
        (
            {"must": "x", "count": 0},
            ["spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1"],
        ),
        (
            {"must": "x", "count": 11},
            ["spec.count: Invalid value: 11: spec.count in body should be less than or equal to 10"],
        ),
        ({"must": "x", "above": 1}, ["spec.above: Invalid value: 1: spec.above in body should be greater than 1"]),
        (
            {"must": "x", "on": "true"},
            ['spec.on: Invalid value: "string": spec.on in body must be of type boolean: "string"'],
        ),
        ({"must": "x", "colour": "blue"}, ['spec.colour: Unsupported value: "blue": supported values: "red", "green"']),
        ({"must": "x", "list": []}, ["spec.list: Invalid value: 0: spec.list in body should have at least 1 items"]),
        ({"must": "x", "list": ["a", "b", "c"]}, ["spec.list: Too many: 3: must have at most 2 items"]),
        (
            {"must": "x", "list": [1]},
            ['spec.list[0]: Invalid value: "integer": spec.list[0] in body must be of type string: "integer"'],
        ),
        ({"must": "x", "set": ["a", "a"]}, ['spec.set[1]: Duplicate value: "a"']),
        ({"must": "x", "byKey": [{"k": "a"}, {"k": "a"}]}, ['spec.byKey[1]: Duplicate value: {"k":"a"}']),
        ({"must": "x", "byKey": [{}]}, ["spec.byKey[0].k: Required value"]),
        (
            {"must": "x", "port": 1.5},
            ['spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"'],
        ),
        (
            {"must": "x", "when": "now"},
            ['spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'],
        ),
        (
            {"must": "x", "one": {"a": "1", "b": "2"}},
            [
                (
                    '<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). '
                    "Found 2 valid alternatives"
                )
            ],
        ),
        (
            {"must": "x", "never": {"a": "1"}},
            ['<nil>: Invalid value: "": "spec.never" must not validate the schema (not)'],
        ),
        ({"must": "x", "port": "http", "when": "2026-01-01T00:00:00Z", "one": {"a": "1"}, "null": None}, []),
    ],
)
def test_validation_in_the_servers_words(spec: Obj, messages: list[str]) -> None:
    assert [str(error) for error in SCHEMA.validate(thing(**spec))] == messages


def test_an_update_may_keep_values_that_were_already_invalid() -> None:
    old = thing(must="x", short="bad", byKey=[{"k": "a", "v": 1}])
    new = thing(must="y", short="bad", byKey=[{"k": "new"}, {"k": "a", "v": 1}])
    assert SCHEMA.validate(new, old) == []
    assert len(SCHEMA.validate(new)) == 2


PATH = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("schema", "messages"),
    [
        ({}, ["type: Required value: must not be empty at the root"]),
        (TEXT, ['type: Invalid value: "string": must be object at the root']),
        (obj(a={}), ["properties[a].type: Required value: must not be empty for specified object fields"]),
        (obj(a=array({})), ["properties[a].items.type: Required value: must not be empty for specified array items"]),
        (obj(a={"type": "array"}), ["properties[a].items: Required value: must be specified"]),
        (obj(a={"$ref": "#/x"}), ["properties[a].$ref: Forbidden: $ref is not supported"]),
        (
            obj(a={**obj(b=TEXT), "additionalProperties": TEXT}),
            ["properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (
            {"type": "object", "additionalProperties": TEXT},
            ["additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            obj(a=array(TEXT, uniqueItems=True)),
            [
                (
                    "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
                    "complexity becomes quadratic"
                )
            ],
        ),
        (obj(a={"type": "object", "not": TEXT}), ["properties[a].not.type: Forbidden: must be empty to be structural"]),
        (
            obj(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
            ["properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            obj(a=array(obj(k=TEXT), **{"x-kubernetes-list-type": "map"})),
            [
                (
                    "properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
                    "x-kubernetes-list-type is map"
                )
            ],
        ),
        (
            obj(a={"type": "object", "allOf": [{"properties": {"z": {"minLength": 1}}}]}),
            [
                (
                    f"properties[a].properties[z]: Required value: because it is defined in "
                    f"{PATH}.properties[a].allOf[0].properties[z]"
                )
            ],
        ),
        (
            obj(metadata=obj(labels={"type": "object"})),
            [
                (
                    "properties[metadata]: Forbidden: must not specify anything other than name and "
                    "generateName, but metadata is implicitly specified"
                )
            ],
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: Obj, messages: list[str]) -> None:
    assert [str(error) for error in schemas.check(schema, PATH)] == [f"{PATH}.{one}" for one in messages]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        obj(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        obj(a={**obj(b=TEXT), "oneOf": [{"required": ["b"]}]}),
        obj(metadata=obj(name={"type": "string", "pattern": "a"})),
        obj(spec=SPEC),
    ],
)
def test_a_structural_schema_is_accepted(schema: Obj) -> None:
    assert schemas.check(schema, PATH) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 20) | st.text("ab", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "k", "q", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)
SPECS = st.dictionaries(st.sampled_from(sorted([*SPEC["properties"], "unknown"])), JSON, max_size=5)


@given(SPECS)
def test_pruning_and_defaulting_twice_is_doing_it_once(spec: Obj) -> None:
    given_ = thing(**spec)
    before = copy.deepcopy(given_)
    once = SCHEMA.default(SCHEMA.prune(given_))
    assert given_ == before
    assert SCHEMA.default(SCHEMA.prune(once)) == once
    assert "unknown" not in once["spec"]
