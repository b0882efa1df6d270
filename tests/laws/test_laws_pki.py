"""Laws of `syncer pki`: whatever became of the Secrets, a run refuses and writes nothing, or completes them."""

import copy
from collections.abc import Callable
from datetime import timedelta

import yaml
from hypothesis import event, given
from hypothesis import strategies as st
from pki_scene import AUTHORITIES, NOW, WANTED, certificate, files, put, run, service, writes

from syncer.api import Obj
from syncer.pki import certificates, layout
from syncer.pki.plan import Damaged

Secrets = dict[str, Obj]
Damage = Callable[[Secrets], None]

#: What can't be made again.
PRECIOUS = (*(f"{name}.{suffix}" for name in AUTHORITIES for suffix in ("crt", "key")), "sa.key")


def made() -> Secrets:
    found: Secrets = {}
    run(found)
    return found


OURS, OTHERS = made(), made()
FILES = [(secret, name) for secret in OURS for name in files(OURS[secret])]


def removed(secret: str) -> Damage:
    def change(secrets: Secrets) -> None:
        secrets.pop(secret, None)

    return change


def labelled(secret: str, label: str | None) -> Damage:
    def change(secrets: Secrets) -> None:
        if secret in secrets:
            secrets[secret]["metadata"]["labels"] = {layout.MARK: label} if label else {}

    return change


def put_into(file: tuple[str, str], content: bytes | None) -> Damage:
    secret, name = file

    def change(secrets: Secrets) -> None:
        if secret in secrets and (content is not None or name in secrets[secret]["data"]):
            put(secrets[secret], name, content)

    return change


def contents(secret: str, name: str) -> st.SearchStrategy[bytes | None]:
    """Return what a file may have become: gone, cut off, garbage, or another one of ours or of another cluster."""
    own = files(OURS[secret])[name]
    others = [files(world[each])[file] for world in (OURS, OTHERS) for each, file in FILES]
    garbage = [None, b"", own[: len(own) // 2], own * 2, b"\xff\x00", own.replace(b"A", b"B"), own + b"\n"]
    return st.sampled_from([*garbage, files(OTHERS[secret])[name]]) | st.sampled_from(others)


FILE_DAMAGE = st.sampled_from(FILES).flatmap(lambda file: contents(*file).map(lambda found: put_into(file, found)))
SECRET_DAMAGE = st.sampled_from(WANTED.secrets).flatmap(
    lambda name: st.sampled_from([removed(name), labelled(name, None), labelled(name, "other")])
)
DAMAGE = st.lists(FILE_DAMAGE | FILE_DAMAGE | FILE_DAMAGE | SECRET_DAMAGE, max_size=6)
DAYS = st.sampled_from([0, 0, 0, -1, 200, 300, 400, 3400, 3649, 3651])
NAMES = st.sampled_from([(), ("api.example.com",)])


@given(damages=DAMAGE, days=DAYS, names=NAMES)
def test_run_refuses_and_writes_nothing_or_completes_all(
    damages: list[Damage], days: int, names: tuple[str, ...]
) -> None:
    secrets, now = copy.deepcopy(OURS), NOW + timedelta(days=days)
    for damage in damages:
        damage(secrets)
    before = copy.deepcopy(secrets)
    try:
        run(secrets, now=now, names=names)
    except Damaged:
        event("refused")
        assert secrets == before
        return
    event("completed")
    assert writes(run(secrets, now=now, names=names)) == []
    assert "api-pki" in before or not before
    had = files(before["api-pki"]) if "api-pki" in before else {}
    has = files(secrets["api-pki"])
    assert {name: has[name] for name in PRECIOUS if name in had} == {
        name: had[name] for name in PRECIOUS if name in had
    }
    assert certificates.holds(has["sa.pub"], certificates.public_pem(certificates.read_key(has["sa.key"])))
    _is_whole(secrets)


def _is_whole(secrets: Secrets) -> None:
    """Check that each certificate is of its CA and has its key, and that the kubeconfigs lead there."""
    main = files(secrets["api-pki"])
    for name, (authority, leaf) in layout.leaves(WANTED, layout.address_of(service())).items():
        pair = certificates.read_pair(main[f"{name}.crt"], main[f"{name}.key"])
        pair.certificate.verify_directly_issued_by(certificate(secrets["api-pki"], f"{authority}.crt"))
        assert pair.certificate.subject == leaf.subject
    for secret in ("api-kubeconfig", "api-daemon"):
        found = files(secrets[secret])
        pair = certificates.read_pair(found["tls.crt"], found["tls.key"])
        pair.certificate.verify_directly_issued_by(certificate(secrets["api-pki"], "ca.crt"))
        assert certificate(secrets[secret], "ca.crt") == certificate(secrets["api-pki"], "ca.crt")
        assert yaml.safe_load(found["config"])["clusters"][0]["cluster"]["server"] == "https://api.shop.svc"
