"""What may be a secret is hidden in texts and options, and nothing else is."""

from pathlib import Path
from typing import Any

import pytest
from cli_scene import CONFIG

from syncer.cli.redaction import HIDDEN, options_without_secrets, values_without_secrets, without_secrets
from syncer.config import load
from syncer.plugins import installed

PLANTED = "swordfish4711"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"the proxy http://user:{PLANTED}@proxy:3128 refuses", f"the proxy http://{HIDDEN}@proxy:3128 refuses"),
        (f"at https://{PLANTED}@10.0.0.1:6443/api", f"at https://{HIDDEN}@10.0.0.1:6443/api"),
        (f"https://user:{PLANTED}/@/x@host", f"https://{HIDDEN}@host"),
        (f"a key {PEM} and more", f"a key {HIDDEN} and more"),
        (f"a key that is cut: {PEM[:40]}", f"a key that is cut: {HIDDEN}"),
        (f"with eyJhbGciOiJSUzI1NiJ9.{PLANTED}.{PLANTED}, refused", f"with {HIDDEN}, refused"),
        (f"Authorization: Bearer {PLANTED}", f"Authorization: Bearer {HIDDEN}"),
        (f"run with --token={PLANTED} -v", f"run with --token={HIDDEN} -v"),
        (f"client-key-data: {PLANTED}", f"client-key-data: {HIDDEN}"),
        (f'{{"password": "{PLANTED} and more"}}', f'{{"password": {HIDDEN}}}'),
        (f"exec plugin gke failed; it printed: no\n{PLANTED}", f"exec plugin gke failed; it printed: {HIDDEN}"),
    ],
)
def test_secret_in_a_text_is_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://10.0.0.1:6443 answers, and accepts the credentials",
        "the host cluster has a Secret vc-shop/token-x-shop-x-shop that is not ours",
        "shop/pod-tokens: the kind isn't served; mail to somebody@example.org",
        '- resources: ["serviceaccounts/token"]\n  verbs: ["create"]',
        'rest_client_requests_total{cluster="",host="10.0.0.1:6443",code="200"} 3.0',
        "syncer rbac --side host --user daemon | kubectl apply -f -",
    ],
)
def test_text_without_a_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_texts_deep_in_json_are_looked_through() -> None:
    data = {"items": [{"reason": f"token={PLANTED}", "tried": 3, "host": None}]}
    assert values_without_secrets(data) == {"items": [{"reason": f"token={HIDDEN}", "tried": 3, "host": None}]}


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"apiToken": PLANTED}, {"apiToken": HIDDEN}),
        ({"vault": {"client_secret": PLANTED, "role": "a"}}, {"vault": {"client_secret": HIDDEN, "role": "a"}}),
        ({"passwords": [PLANTED]}, {"passwords": [HIDDEN]}),
        ({"credentials": {"user": PLANTED}}, {"credentials": {"user": HIDDEN}}),
        ({"annotations": {"note": PLANTED}}, {"annotations": {"note": HIDDEN}}),
        ({"patches": {"down": [{"value": {"a": [PLANTED]}}]}}, {"patches": {"down": [{"value": HIDDEN}]}}),
        ({"patches": {"down": [{"cel": f"'{PLANTED}'"}]}}, {"patches": {"down": [{"cel": HIDDEN}]}}),
        ({"server": f"https://a:{PLANTED}@b"}, {"server": f"https://{HIDDEN}@b"}),
    ],
)
def test_option_with_a_secret_is_hidden(options: dict[str, Any], shown: dict[str, Any]) -> None:
    assert options_without_secrets(options) == shown


def test_configuration_without_a_secret_is_shown_whole(tmp_path: Path) -> None:
    file = tmp_path / "syncer.yaml"
    file.write_text(f"{CONFIG}sync: {{toHost: {{secrets: {{onHostDeletion: report}}}}}}\n")
    options = load(str(file), installed()).config.model_dump(mode="json", by_alias=True)
    assert options_without_secrets(options) == options
