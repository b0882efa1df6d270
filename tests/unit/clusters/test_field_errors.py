"""Messages of API servers lose the values that they quote, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.clusters.field_errors import LONGEST, without_values

#: Values as ``field.Error`` of k8s.io/apimachinery 0.36.3 writes them (from Go: strings, numbers, pointers, structs,
#: maps, quantities), and where that differs, those of 0.31.0.
WRITTEN_BY_GO = [
    r'"s3cret"',
    r'"a \"quoted\": b"',
    r'"tab\t, line\n, nul\x00, bell\a"',
    r'"ünïcödé \u2028 😀"',
    r'"bad \xff utf8"',
    r'"back\\slash"',
    r'"<&>"',
    r'""',
    r"-3",
    r"8",
    r"1.5",
    r"1e+21",
    r"true",
    r"null",
    r'"w0rd: x"',
    r'{"m":{},"n":1,"pw":"s3cret: \"}"}',
    r'["a: b",2,null]',
    r'["s3cret: x","]"]',
    r'{"Pw":"s3cret: }","N":2}',
    r'"czNjcmV0"',
    r'{"A":"s3cret"}',
    r'"1500m"',
    r"0x5",
    r'"null"',
    r'map[string]interface {}{"m":map[string]interface {}{}, "n":1, "pw":"s3cret: \"}"}',
    r'[]interface {}{"a: b", 2, interface {}(nil)}',
    r'[]string{"s3cret: x", "]"}',
    r'main.point{Pw:"s3cret: }", N:2}',
    r"[]byte{0x73, 0x33, 0x63, 0x72, 0x65, 0x74}",
    r'map[string]string{"a":"s3cret"}',
    r'struct { A string }{A:"s3cret"}',
    r"resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}}",
    r'intstr.IntOrString{Type:1, IntVal:0, StrVal:"http"}',
    r"v1.Duration{Duration:0}",
    "<nil>",
]
DETAILS = [
    "",
    "must be valid: see the manual",
    'supported values: "fast", "slow: er"',
    "a lowercase RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.' (e.g. 'example.com')",
    "must have at most 5 items",
]
TITLES = ["Invalid value", "Unsupported value", "Duplicate value", "Too many", "Too few"]


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("value", WRITTEN_BY_GO)
def test_value_is_removed_and_its_detail_is_whole(value: str, detail: str) -> None:
    rest = f": {detail}" if detail else ""
    for title in TITLES:
        assert without_values(f"spec.a: {title}: {value}{rest}") == f"spec.a: {title}{rest}"
        both = f"[spec.a: {title}: {value}{rest}, spec.b: Invalid value: the name: is too long, c: {title}: {value}]"
        assert without_values(f'Pod "x" is invalid: {both}') == (
            f'Pod "x" is invalid: [spec.a: {title}{rest}, spec.b: Invalid value: the name: is too long, c: {title}]'
        ), "a message of several fields"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: the name is too long",
        "Invalid value: cls is immutable: delete and create the object",
        "Invalid value: failed rule: self.metadata.name.size() <= 20",
        "Invalid value: name (or generateName) is required: see the manual",
        "Too many: must have at most 5 items",
        "Required value: must be valid: see the manual",
        "Forbidden: no: really",
        "Too long: may not be more than 262144 bytes",
        "Internal error: no: really",
        "Invalid value",
        'Not found: "data"',
        'configmaps "x" not found',
        "",
    ],
)
def test_message_without_a_value_is_whole(message: str) -> None:
    assert without_values(message) == message


@pytest.mark.parametrize("value", ["1500m", "10.0.0.1/24", "2024-01-01"])
def test_single_word_before_a_colon_may_be_a_value_without_quotes(value: str) -> None:
    assert without_values(f"[a: Invalid value: {value}: must be less, b: Duplicate value: {value}]") == (
        "[a: Invalid value: must be less, b: Duplicate value]"
    )


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            'Invalid value: "string": spec.replicas in body must be of type integer: "string"',
            "Invalid value: spec.replicas in body must be of type integer",
        ),
        (
            'Invalid value: "x": strconv.ParseUint: parsing "x": no number',
            "Invalid value: strconv.ParseUint: parsing …: no number",
        ),
        ('Invalid value: "10.0.0.300/8": invalid CIDR address: 10.0.0.300/8', "Invalid value: invalid CIDR address: …"),
        ('Invalid value: "object": object has too many fields', "Invalid value: object has too many fields"),
    ],
)
def test_value_that_the_detail_repeats_is_removed_there_too(message: str, kept: str) -> None:
    assert without_values(message) == kept


@pytest.mark.parametrize(
    "rest",
    [
        '"s3cret" is no name',
        '"s3cret',
        '{"pw": "s3cret"',
        '{"pw": "s3cret"} is not allowed',
        '{"pw": s3"cret}',
        "Password(s3cret) is not allowed",
        "[s3cret is not allowed",
        "s3cret",
        f'"{"s3cret" * LONGEST}": too long',
    ],
)
def test_all_is_removed_where_the_end_of_the_value_is_not_certain(rest: str) -> None:
    assert without_values(f"spec.a: Invalid value: {rest}") == "spec.a: Invalid value"


# -- law -----------------------------------------------------------------------------------------------------


def quoted_by_go(text: str) -> str:
    """Quote a text as Go's ``%q`` does."""
    short = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    short |= {'"': r"\"", "\\": r"\\"}

    def written(char: str) -> str:
        if char in short:
            return short[char]
        if char.isprintable():
            return char
        code = ord(char)
        if code < 0x80:
            return f"\\x{code:02x}"
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(map(written, text))}"'


def json_of_go(value: Any) -> str:
    """Write a value as Go's ``json.Marshal`` does."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def syntax_of_go(value: Any) -> str:
    """Write a value as Go's ``%#v`` does."""
    if isinstance(value, dict):
        inner = ", ".join(f"{quoted_by_go(name)}:{syntax_of_go(each)}" for name, each in value.items())
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(syntax_of_go, value))}}}"
    if isinstance(value, str):
        return quoted_by_go(value)
    return "interface {}(nil)" if value is None else str(value).lower()


MARKER = "hunter2"
#: Texts that look like what surrounds a value, around what must not be seen.
SECRETS = st.lists(
    st.sampled_from(['"', "\\", ": ", ", ", "]", "}", "{", "Invalid value: ", "\n", "\u2028", "😀", "…", "'", "`"])
    | st.text(max_size=3),
    max_size=8,
).map(lambda parts: MARKER.join(["", *parts, ""]))
VALUES = st.recursive(
    SECRETS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SECRETS, inner, max_size=3), max_leaves=8
)


@given(VALUES, st.sampled_from(DETAILS), st.sampled_from([quoted_by_go, json_of_go, syntax_of_go]))
def test_nothing_of_a_value_remains(value: Any, detail: str, written: Callable[[Any], str]) -> None:
    text = quoted_by_go(json.dumps(value)) if written is quoted_by_go and not isinstance(value, str) else written(value)
    rest = f": {detail}" if detail else ""
    for title in TITLES:
        assert without_values(f"{title}: {text}{rest}") == f"{title}{rest}"


@given(st.text(alphabet='"\\:, ]}{[(&x\n', max_size=60).map(lambda text: f'"{MARKER}{text}'))
def test_value_is_never_shown_however_its_quotes_go_on(rest: str) -> None:
    assert MARKER not in without_values(f"Invalid value: {rest}")
