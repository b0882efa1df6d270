"""CEL expressions: their results, errors found without an object, and values that never appear in
messages.
"""

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import ConfigError
from syncer.translate import cel
from syncer.translate.cel import Expression
from syncer.translate.pointers import Unfit

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
FLOATS = st.floats(min_value=-1e18, max_value=1e18, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | FLOATS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
EMPTY: dict[str, Any] = {"value": None, "self": {}, "other": None, "context": {}}


def result(text: str, **variables: Any) -> Any:
    return Expression(text).result({**EMPTY, **variables})


def wrong(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        Expression(text)
    return str(caught.value)


def unfit(text: str, **variables: Any) -> str:
    with pytest.raises(Unfit) as caught:
        result(text, **variables)
    return str(caught.value)


@given(JSON)
def test_values_keep_their_types(value: Any) -> None:
    assert _typed(result("value", value=value)) == _typed(value)
    assert _typed(result("{'a': [value]}", value=value)) == _typed({"a": [value]})
    assert _typed(result("self.spec", self={"spec": value, "metadata": {}})) == _typed(value)


def _typed(value: Any) -> str:
    """As JSON, in which 1, 1.0 and true are three different things."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("value + '-x'", "a", "a-x"),
        ("value + 1", 3, 4),
        ("value / 2", 7, 3),
        ("double(value)", 3, 3.0),
        ("value == null ? 'none' : value", None, "none"),
        ("value.filter(x, x != 'a')", ["a", "b"], ["b"]),
        ("value.map(k, k).sort()", {"b": 1, "a": 2}, ["a", "b"]),
        ("value.replace('docker.io/', 'mirror.local/')", "docker.io/app:1", "mirror.local/app:1"),
        ("value.split('/')[0]", "shop/db", "shop"),
        ("base64.encode(bytes(value))", "a", "YQ=="),
        ("math.greatest(value, 2)", 1, 2),
        ("has(value.a) ? value.a : null", {}, None),
        ("'context.nothing // at all' + value", "!", "context.nothing // at all!"),
        ("type(value) == string", "a", True),
        ("value.exists(name, name == 'a')", ["a"], True),
    ],
)
def test_expression_gives_plain_json(text: str, value: Any, expected: Any) -> None:
    assert _typed(result(text, value=value)) == _typed(expected)


def test_four_variables_are_there() -> None:
    text = "value + self.metadata.namespace + other.spec.size + context.namespace"
    self = {"metadata": {"namespace": "n"}}
    assert result(text, value="v", self=self, other={"spec": {"size": "s"}}, context={"namespace": "c"}) == "vnsc"
    assert sorted(Expression(text).variables) == ["context", "other", "self", "value"]
    assert list(Expression("1 + 1").variables) == []


@pytest.mark.parametrize(
    "text",
    [
        "self.spec.items[0].name",
        "self.spec.items.map(i, i.name)",
        "self.spec.size() + size(self.spec.items)",
        "has(self.spec.items) && !has(self.spec.nothing)",
        "self . spec . items [0] . name",
        "self['spec'].items.size()",
        "[self.spec.items[0].name, self.metadata.name]",
        "{'a': self.spec, 'b': self.spec.items[0]}",
        "self.size() > 2",
        "self == other",
    ],
)
def test_expression_gets_only_the_fields_that_it_reads(text: str) -> None:
    obj = {"kind": "Widget", "metadata": {"name": "w"}, "spec": {"items": [{"name": "a", "size": 1}], "b": {"c": 2}}}
    whole = cel._library().compile(text).execute({"self": obj, "other": obj})
    assert result(text, self=obj, other=obj) == whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value +", "is not a CEL expression: column 8: it ends too early."),
        ("value.map(x, x", "is not a CEL expression: column 15: missing ')' at its end."),
        ("1 +\n\n  * 3", "is not a CEL expression: line 3, column 3: extraneous input '*'."),
        ("value ? 1", "is not a CEL expression: column 10: it ends too early."),
        ("'a' + valeu", "is wrong at column 7: there is no variable 'valeu'. Did you mean value?"),
        (
            "value +\n object",
            "is wrong at line 2, column 2: there is no variable 'object'. There are value, self, other, context.",
        ),
        ("value.replce('a', 'b')", "is wrong at column 7: there is no function 'replce'. Did you mean replace?"),
        ("context.nmae", "is wrong at column 9: there is no field of context 'nmae'. Did you mean name?"),
        (
            "value.filter(x, y)",
            "is wrong at column 17: there is no variable 'y'. There are value, self, other, context.",
        ),
    ],
)
def test_error_in_an_expression_is_reported_with_its_position(text: str, message: str) -> None:
    assert wrong(text) == message


@pytest.mark.usefixtures("without_cel")
def test_error_without_the_extra_names_the_way_out() -> None:
    assert wrong("value") == "needs CEL, which is not installed. Run: pip install 'vsyncer[cel]'"


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("value.secret", {}, "there is no field 'secret' where it is read"),
        ("value[value.at]", {"at": "hunter2"}, "a field that it reads is not there"),
        ("value[3]", ["hunter2"], "an item that it reads is not there"),
        ("value + 1", "hunter2", "it has no such operation: string + int"),
        ("value > 1", "hunter2", "values are of types that do not fit"),
        ("1 / value", 0, "it divides by zero"),
        ("value + 4242424242", 2**63 - 1, "a number becomes too large"),
        ("'a'.matches(value)", "hunter2[", "a function fails on its arguments"),
        ("value.substring(99)", "hunter2", "a function fails on its arguments"),
        ("bool(value)", "hunter2", "a function fails on its arguments"),
        ("int(value)", "hunter2", "a function fails on its arguments"),
        ("{1: value}", "hunter2", "the result has a mapping with keys that are not text"),
        ("bytes(value)", "hunter2", "the result has a bytes in it, which is not JSON"),
        ("[timestamp(value)]", "2020-01-01T00:00:00Z", "the result has a datetime in it, which is not JSON"),
        ("value / 0.0", 1.0, "the result has a number that JSON, or a 64-bit integer, can't hold"),
        ("value", 2**70, "the result has a number that JSON, or a 64-bit integer, can't hold"),
    ],
)
def test_failed_evaluation_gives_reason_without_values(
    text: str, value: Any, message: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert unfit(text, value=value) == message
    assert "hunter2" not in caplog.text + "".join(capfd.readouterr())


def test_panic_in_the_library_is_a_failure_of_this_expression_alone() -> None:
    class Panic(BaseException):
        pass

    class Program:
        def execute(self, _: Any) -> Any:
            raise Panic("hunter2")

    expression = Expression("value")
    expression._program = Program()
    with pytest.raises(Unfit, match="a function fails on its arguments"):
        expression.result(EMPTY)


def test_command_line_of_the_library_is_not_loaded() -> None:
    Expression("value")
    assert not hasattr(sys.modules["cel.cli"], "app")
    assert math.isclose(result("value", value=0.1), 0.1)
