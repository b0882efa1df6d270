"""A name in a copy leads to nothing but the object that the tenant means."""

from typing import Any, ClassVar

import pytest

from syncer.api import (
    Key,
    Mirror,
    NameTranslator,
    Obj,
    ObjectRef,
    Outcome,
    Reference,
    References,
    Refused,
    Resource,
    Side,
)
from syncer.api.errors import NotYet
from syncer.clusters import codec
from syncer.engine.reconcile.controller import MOST_VACANT
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat
from syncer.plugins import installed
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import namespace, pod, secret

ALL = (SingleNamespace, PerNamespace, Unchanged, VclusterCompat)
SAME = (PerNamespace, Unchanged)
OTHER = (SingleNamespace, VclusterCompat)
SECRETS = Resource("v1", "Secret", "secrets")
CERTIFICATES = Resource("cert-manager.io/v1", "Certificate", "certificates")
#: How a Pod names a Secret; the last two let it be missing.
SPECS: tuple[Obj, ...] = (
    {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]},
    {"containers": [{"name": "main", "image": "i", "envFrom": [{"secretRef": {"name": "db"}}]}]},
    {"imagePullSecrets": [{"name": "db"}]},
    {"volumes": [{"name": "v", "secret": {"secretName": "db", "optional": True}}]},
    {"containers": [{"name": "main", "image": "i", "envFrom": [{"secretRef": {"name": "db", "optional": True}}]}]},
)


def at_home(world: World) -> World:
    """Return a world with its host namespace."""
    if world.settings.names.host_namespaces() is None:
        world.given(virtual=[namespace("shop")])
        world.settle("namespaces", "shop")
        world.sent.clear()
    return world


def shop(translator: type[NameTranslator], spec: Obj, **options: Any) -> World:
    """Return a world with a Pod, and with everything else that it needs."""
    config = merged({"sync": {"toHost": {"serviceAccounts": {"enabled": False}}}}, options.pop("config", {}))
    world = at_home(World(translator=translator, config=config, **options))
    return world.given(virtual=[pod("web", spec=spec)])


def host_key(world: World, name: str = "db") -> Key:
    found: Key = world.settings.names.to_host(SECRETS, Key("shop", name))
    return found


def foreign(world: World, name: str = "db") -> Obj:
    """Return the host's own Secret where the copy of the tenant's would be."""
    return secret(host_key(world, name).name, namespace=host_key(world, name).namespace)


def makes_it(world: World) -> bool:
    return any(sent.verb == "create" for sent in world.settle("pods", "shop/web"))


@pytest.mark.parametrize("translator", SAME)
@pytest.mark.parametrize("spec", SPECS)
def test_pod_with_a_name_that_is_kept_waits_for_the_copy(translator: type[NameTranslator], spec: Obj) -> None:
    world = shop(translator, spec)
    for _ in range(2):
        decision = world.decide("pods", "shop/web")
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
        assert decision.reason == "it names the Secret shop/db, which has no copy on the host yet"
        assert decision.on == (ObjectRef(Side.HOST, SECRETS, host_key(world)),)
        world.given(host=[foreign(world)])
    world.gone(host=[foreign(world)]).given(virtual=[secret("db")])
    world.settle("secrets", "shop/db")
    assert makes_it(world)


@pytest.mark.parametrize("translator", OTHER)
@pytest.mark.parametrize("spec", SPECS)
def test_pod_is_not_made_while_something_of_others_is_where_its_name_leads(
    translator: type[NameTranslator], spec: Obj
) -> None:
    world = shop(translator, spec)
    world.given(host=[foreign(world)])
    with pytest.raises(Refused, match="it names the Secret shop/db, and an object of others has that place") as caught:
        world.settle("pods", "shop/web")
    assert host_key(world).name not in str(caught.value)
    assert not [sent for sent in world.sent if sent.verb == "create"]
    world.gone(host=[foreign(world)])
    assert makes_it(world), "the name leads nowhere, and only the tenant's own can come there"


@pytest.mark.parametrize("translator", OTHER)
def test_pod_with_a_resolved_name_needs_no_live_read(translator: type[NameTranslator]) -> None:
    world = shop(translator, SPECS[0]).given(virtual=[secret("db")])
    world.settle("secrets", "shop/db")
    decision = world.decide("pods", "shop/web")
    assert world._decided is not None
    assert (len(decision.writes), world._decided.vacant) == (1, ())


@pytest.mark.parametrize("translator", ALL)
def test_pod_reads_only_the_marks_of_the_copies_that_it_names(
    translator: type[NameTranslator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may name thousands, each with contents that take milliseconds to decode."""
    world = shop(translator, SPECS[0]).given(virtual=[secret("db", {"color": "blue"})])
    world.settle("secrets", "shop/db")
    decode, decoded = codec.stored, list[bytes]()

    def stored(raw: bytes) -> Obj:
        decoded.append(raw)
        return decode(raw)

    monkeypatch.setattr(codec, "stored", stored)
    assert len(world.decide("pods", "shop/web").writes) == 1
    assert decoded
    assert not [raw for raw in decoded if b'"color":' in raw]


def test_copy_of_another_object_of_the_same_host_name_is_none_of_the_named_one() -> None:
    world = World(translator=VclusterCompat, config={"sync": {"toHost": {"serviceAccounts": {"enabled": False}}}})
    theirs, mine = (
        secret("a-x-b", namespace="c"),
        pod("web", namespace="b-x-c", spec={"imagePullSecrets": [{"name": "a"}]}),
    )
    world.given(virtual=[theirs, pod("user", namespace="c", spec={"imagePullSecrets": [{"name": "a-x-b"}]}), mine])
    world.settle("secrets", "c/a-x-b")
    with pytest.raises(Refused, match="it names the Secret b-x-c/a, and an object of others has that place"):
        world.settle("pods", "b-x-c/web")


@pytest.mark.parametrize("translator", SAME)
@pytest.mark.reason("ReferenceUnsynced")
def test_name_that_is_kept_of_a_kind_that_nothing_syncs_is_refused(translator: type[NameTranslator]) -> None:
    off = {"sync": {"toHost": {"secrets": {"enabled": False}}}}
    world = shop(translator, {"imagePullSecrets": [{"name": "db"}]}, config=off)
    with pytest.raises(Refused, match="names the Secret shop/db, and no Secret is synced"):
        world.decide("pods", "shop/web")


@pytest.mark.reason("TooManyMissing")
def test_names_that_lead_nowhere_are_looked_at_up_to_a_number() -> None:
    spec = {"imagePullSecrets": [{"name": f"s{number}"} for number in range(MOST_VACANT + 1)]}
    decision = shop(SingleNamespace, spec).decide("pods", "shop/web")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.reason.startswith("it names more than 64 objects that are not there, as the Secret shop/s64")


# -- before the syncer of the named kind is ready ---------------------------------------------------


def unready(world: World) -> World:
    """Return the world as it is just after a start: the Secrets' caches aren't filled yet."""
    world._pair.controllers["secrets"].ready = False
    return world


@pytest.mark.parametrize("translator", OTHER)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.reason("PlaceUnknown")
def test_pod_waits_until_the_owner_of_a_named_object_is_known(translator: type[NameTranslator], spec: Obj) -> None:
    world = unready(shop(translator, spec))
    world.given(host=[foreign(world)])
    with pytest.raises(
        NotYet, match="Secret shop/db, and whose object has that place on the host isn't known"
    ) as caught:
        world.settle("pods", "shop/web")
    assert host_key(world).name not in str(caught.value)
    assert not [sent for sent in world.sent if sent.verb == "create"]
    world.gone(host=[foreign(world)])
    assert makes_it(world), "nothing is there, however long Secrets take"


@pytest.mark.parametrize("translator", OTHER)
def test_pod_is_made_beside_a_copy_that_no_cache_has_yet(translator: type[NameTranslator]) -> None:
    twin = shop(translator, SPECS[0]).given(virtual=[secret("db")])
    twin.settle("secrets", "shop/db")
    copy = twin.copy_of("secrets", "shop/db")
    assert copy
    world = unready(shop(translator, SPECS[0]))
    decision = world.decide("pods", "shop/web")
    world.given(host=[copy])
    assert "create" in [sent.verb for sent in world.apply(decision)]


@pytest.mark.parametrize("translator", OTHER)
def test_place_of_a_copy_is_never_that_of_a_shown_object(translator: type[NameTranslator]) -> None:
    mappings = {"byName": {"infra/db": "elsewhere/db"}}
    config = {"sync": {"fromHost": {"secrets": {"enabled": True, "mappings": mappings}}}}
    world = shop(translator, SPECS[0], config=config)
    world._pair.controllers["host-secrets"].ready = False
    world.given(host=[foreign(world)])
    with pytest.raises(Refused, match="it names the Secret shop/db, and an object of others has that place"):
        world.settle("pods", "shop/web")
    assert world._decided is not None
    assert [each.name for vacant in world._decided.vacant for each in vacant.about] == ["secrets"]


# -- what the host makes ---------------------------------------------------------------------------

BY = {"reference": "spec.secretName", "selector": {"matchLabels": {"made": "yes"}}}
CERTIFICATE = {
    str(CERTIFICATES): {
        "references": {"spec.secretName": "Secret"},
        "related": [{"resource": "secrets", "origin": "host", "by": BY}],
    }
}


def certified(translator: type[NameTranslator]) -> World:
    """Return a world with a Certificate that names the Pod's Secret."""
    world = shop(translator, SPECS[0], config={"sync": {"custom": CERTIFICATE}}, serves=[CERTIFICATES])
    certificate = {"apiVersion": CERTIFICATES.api_version, "kind": "Certificate", "spec": {"secretName": "db"}}
    return world.given(virtual=[{**certificate, "metadata": {"name": "c", "namespace": "shop"}}])


@pytest.mark.parametrize("translator", ALL)
def test_name_may_lead_to_an_object_that_the_host_makes(translator: type[NameTranslator]) -> None:
    world = certified(translator)
    assert world.settle(str(CERTIFICATES), "shop/c"), "nothing has to be there before"
    world.given(host=[merged(foreign(world), {"metadata": {"labels": {"made": "yes"}}})])
    assert makes_it(world)
    assert world.settle(str(CERTIFICATES), "shop/c") == []


@pytest.mark.parametrize("translator", SAME)
def test_operator_need_not_create_existing_host_objects(translator: type[NameTranslator]) -> None:
    world = certified(translator)
    world.given(host=[foreign(world)])
    with pytest.raises(Refused, match="it names the Secret shop/db, and an object of others has that place"):
        world.settle(str(CERTIFICATES), "shop/c")
    with pytest.raises(Refused, match="an object of others has that place"):
        world.settle("pods", "shop/web")


@pytest.mark.parametrize("translator", OTHER)
def test_pod_is_refused_if_its_name_leads_to_a_foreign_object(
    translator: type[NameTranslator],
) -> None:
    world = certified(translator)
    world.settle(str(CERTIFICATES), "shop/c")
    world.given(host=[foreign(world)])
    with pytest.raises(Refused, match="it names the Secret shop/db, and an object of others has that place"):
        world.settle("pods", "shop/web")
    world.given(host=[merged(foreign(world), {"metadata": {"labels": {"made": "yes"}}})])
    assert makes_it(world)


def test_pod_is_woken_by_the_copy_for_which_the_host_made_its_secret() -> None:
    world = certified(SingleNamespace)
    world.given(host=[merged(foreign(world), {"metadata": {"labels": {"made": "yes"}}})])
    with pytest.raises(Refused, match="an object of others has that place"):
        world.settle("pods", "shop/web")
    assert world._decided is not None
    copy = world.settings.names.to_host(CERTIFICATES, Key("shop", "c"))
    assert (CERTIFICATES, copy) in [(read.store.resource, read.key) for read in world._decided.reads]
    world.settle(str(CERTIFICATES), "shop/c")
    assert makes_it(world)


@pytest.mark.parametrize("translator", SAME)
def test_change_of_a_name_leads_to_nothing_of_the_hosts_either(translator: type[NameTranslator]) -> None:
    world = certified(translator)
    world.settle(str(CERTIFICATES), "shop/c")
    world.given(host=[foreign(world, "other")])
    before = world.virtual("Certificate", "shop/c")
    assert before
    world.given(virtual=[merged(before, {"spec": {"secretName": "other"}})])
    with pytest.raises(Refused, match="it names the Secret shop/other, and an object of others has that place"):
        world.settle(str(CERTIFICATES), "shop/c")


@pytest.mark.reason("NoCopyYet")
def test_status_comes_up_while_a_named_object_is_missing() -> None:
    entries = {str(CERTIFICATES): {"references": {"spec.secretName": "Secret"}}}
    world = shop(PerNamespace, {}, config={"sync": {"custom": entries}}, serves=[CERTIFICATES])
    spec = {"apiVersion": CERTIFICATES.api_version, "kind": "Certificate", "spec": {"secretName": "db"}}
    world.given(virtual=[{**spec, "metadata": {"name": "c", "namespace": "shop"}}, secret("db")])
    world.settle("secrets", "shop/db")
    world.settle(str(CERTIFICATES), "shop/c")
    copy = world.copy_of(str(CERTIFICATES), "shop/c")
    gone = world.copy_of("secrets", "shop/db")
    assert copy
    assert gone
    world.gone(host=[gone]).given(host=[merged(copy, {"status": {"ready": True}})])
    decision = world.decide(str(CERTIFICATES), "shop/c")
    assert decision.outcome is Outcome.PENDING
    assert [write.obj["status"] for write in decision.writes] == [{"ready": True}]


class Asking(Mirror):
    """Names a Secret that the host makes for its copy."""

    name = "asking"
    resource = CERTIFICATES
    down = ("spec",)
    references: ClassVar[References] = {"spec.secretName": Reference(SECRETS, use="named", comes_later=True)}


@pytest.mark.parametrize("translator", ALL)
def test_named_object_that_comes_later_need_not_be_there_before(translator: type[NameTranslator]) -> None:
    world = at_home(World([Asking, *installed().syncers()], translator=translator))
    spec = {"apiVersion": CERTIFICATES.api_version, "kind": "Certificate", "spec": {"secretName": "db"}}
    world.given(virtual=[{**spec, "metadata": {"name": "c", "namespace": "shop"}}])
    assert world.settle(Asking, "shop/c")


class Both(Asking):
    """Names the Secret that the host makes, and after it, another."""

    name = "both"
    references: ClassVar[References] = {**Asking.references, "spec.zone.caName": SECRETS}


@pytest.mark.parametrize("translator", ALL)
def test_name_that_comes_later_is_checked_where_it_must_be_there(translator: type[NameTranslator]) -> None:
    world = at_home(World([Both, *installed().syncers()], translator=translator))
    spec = {"secretName": "db", "zone": {"caName": "db"}}
    certificate = {"apiVersion": CERTIFICATES.api_version, "kind": "Certificate", "spec": spec}
    world.given(virtual=[{**certificate, "metadata": {"name": "c", "namespace": "shop"}}], host=[foreign(world)])
    if translator in SAME:
        assert world.decide(Both, "shop/c").outcome is Outcome.PENDING
        return
    with pytest.raises(Refused, match="it names the Secret shop/db, and an object of others has that place"):
        world.settle(Both, "shop/c")
