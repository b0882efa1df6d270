"""Decide, from the Secrets that are there and the Service, which Secrets to write. Nothing is fetched or stored here.

A CA and the key of the tokens are made only if nothing of them is there. One that can't be used is refused,
and nothing is written: all that trusts it would be lost. A certificate that a CA can sign anew is no loss.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Never

from syncer.api.errors import SyncerError
from syncer.api.marks import CLUSTER_SECRET, CLUSTER_SECRET_HOME, CLUSTER_SECRET_NAME
from syncer.api.objects import Obj, labels_of
from syncer.pki import certificates, layout
from syncer.pki.certificates import LIFE, Leaf, Pair, Unusable, day
from syncer.pki.layout import MARK, Address, Wanted

TOKEN_KEY, TOKEN_PUBLIC = "sa.key", "sa.pub"


class Damaged(SyncerError):
    """A Secret can't be used as it is; nothing was written."""


class Outcome(NamedTuple):
    """What became of a file."""

    secret: str
    file: str
    #: ``kept``, ``made`` or ``renewed``.
    action: str
    #: The day on which the certificate ends; ``""`` for what doesn't end.
    ends: str = ""
    why: str = ""


class Step(NamedTuple):
    """A Secret with what becomes of its files."""

    #: The Secret to write; None if it stays as it is. With a resourceVersion, it replaces that one.
    write: Obj | None
    outcomes: list[Outcome]


@dataclass(frozen=True, slots=True)
class Plan:
    """The Secrets, in the order in which they are written."""

    steps: list[Step]
    warnings: list[str]
    address: Address


def plan(wanted: Wanted, service: Obj, found: Mapping[str, Obj], now: datetime) -> Plan:
    """Return what to write.

    Args:
        wanted: The settings.
        service: The Service in front of the virtual API server.
        found: Those of the Secrets that are there, by name.
        now: The time.

    Raises:
        Damaged: A Secret can't be used.
    """
    address = layout.address_of(service)
    main, tenant, daemon = folders = [_opened(name, found.get(name), wanted) for name in wanted.secrets]
    _refuse_if_lost(main, [each.secret for each in (tenant, daemon) if each.secret in found])
    authority = _complete(main, wanted, address, now)
    tenant.client(Leaf(layout.ADMIN, layout.ADMINS), authority, now)
    tenant.text("config", layout.tenant_kubeconfig(wanted, address, tenant.files))
    daemon.client(Leaf(layout.DAEMON, layout.DAEMONS), authority, now)
    daemon.text("config", layout.daemon_kubeconfig(wanted, address))
    steps = [Step(_changed(found.get(each.secret), each, wanted, service), each.outcomes) for each in folders]
    return Plan(steps, main.warnings, address)


def _complete(folder: "_Folder", wanted: Wanted, address: Address, now: datetime) -> Pair:
    """Complete the files of the control plane; return the CA of its clients."""
    authorities = {name: folder.authority(name, called, now) for name, called in layout.AUTHORITIES.items()}
    folder.token_keys()
    for name, (authority, leaf) in layout.leaves(wanted, address).items():
        folder.leaf(name, leaf, authorities[authority], now)
    folder.text("controller-manager.conf", layout.controller_manager_kubeconfig(wanted))
    folder.text("super-admin.conf", layout.super_admin_kubeconfig(wanted, address, folder.files))
    return authorities["ca"]


@dataclass(slots=True)
class _Folder:
    """The files of a Secret, while they are completed."""

    namespace: str
    secret: str
    files: dict[str, bytes]
    outcomes: list[Outcome] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The Secret, for people."""
        return f"Secret {self.namespace}/{self.secret}"

    def authority(self, name: str, called: str, now: datetime) -> Pair:
        """Return a CA: the one that is there, or a new one.

        If its key alone is there, it gets a new certificate: clients of the old one trust what it signs.
        """
        certificate, key = f"{name}.crt", f"{name}.key"
        is_there, has_key = certificate in self.files, key in self.files
        try:
            if is_there and not has_key:
                raise Unusable(f"{key} is missing")
            known = certificates.read_key(self.files[key]) if has_key else None
            new = None if is_there else certificates.new_authority(called, now, known)
            pair = new or certificates.read_pair(self.files[certificate], self.files[key])
            if not certificates.is_authority(pair):
                raise Unusable("it isn't the certificate of a CA")
        except Unusable as error:
            hint = f"Restore {certificate} and {key} from a backup. Or remove both from the Secret, and run this again"
            self.refuse(
                certificate, str(error), f"{hint}: there is a new CA then, which no client of the old one trusts"
            )
        if pair.begins > now:
            self.refuse(
                certificate, f"it is valid only from {pair.begins:%Y-%m-%d %H:%M}Z on", "Is a clock wrong? Set it"
            )
        if pair.ends <= now:
            self.refuse(certificate, f"it ended on {day(pair.ends)}", _rotation(certificate))
        if pair.ends - now < LIFE:
            self.warnings.append(
                f"{self.place}: {certificate} ends on {day(pair.ends)}, and what it signs ends no later. "
                f"{_rotation(certificate)}."
            )
        self._put(key, self.files[key] if has_key else pair.key_pem)
        why = "with the key that was there" if new and has_key else ""
        self._note(certificate, pair.certificate_pem if new else self.files[certificate], pair, why)
        return pair

    def token_keys(self) -> None:
        """Complete the keys by which tokens of ServiceAccounts are signed and verified.

        The public file may hold further keys, by which tokens of former private ones stay valid.
        """
        has_key, has_public = TOKEN_KEY in self.files, TOKEN_PUBLIC in self.files
        try:
            if has_public and not has_key:
                raise Unusable("it is missing")
            key = certificates.read_key(self.files[TOKEN_KEY]) if has_key else certificates.new_key()
        except Unusable as error:
            hint = f"Restore it from a backup. Or remove {TOKEN_KEY} and {TOKEN_PUBLIC} from the Secret: all tokens"
            self.refuse(TOKEN_KEY, str(error), f"{hint} are void then, and are issued anew")
        public = certificates.public_pem(key)
        if has_public and not certificates.holds(self.files[TOKEN_PUBLIC], public):
            hint = f"Append that, or remove {TOKEN_PUBLIC} from the Secret, and run this again: it is made from the key"
            self.refuse(TOKEN_PUBLIC, f"it lacks the public key of {TOKEN_KEY}", hint)
        self._note(TOKEN_KEY, self.files[TOKEN_KEY] if has_key else certificates.key_pem(key))
        self._note(TOKEN_PUBLIC, self.files[TOKEN_PUBLIC] if has_public else public)

    def leaf(self, name: str, leaf: Leaf, authority: Pair, now: datetime) -> None:
        """Complete a certificate and its key: keep those that are there, or make both anew."""
        certificate, key = f"{name}.crt", f"{name}.key"
        missing = [file for file in (certificate, key) if file not in self.files]
        why = f"{key} was missing" if missing == [key] else ""
        if not missing:
            try:
                pair = certificates.read_pair(self.files[certificate], self.files[key])
                why = certificates.fault(pair, leaf, authority, now)
            except Unusable as error:
                why = str(error)
            if not why:
                self._note(certificate, self.files[certificate], pair)
                return
        pair = certificates.issue(leaf, authority, now)
        self._put(key, pair.key_pem)
        self._note(certificate, pair.certificate_pem, pair, why)

    def client(self, leaf: Leaf, authority: Pair, now: datetime) -> None:
        """Complete the certificate of a client, and the CA of its server beside it."""
        self.text("ca.crt", authority.certificate_pem)
        self.leaf("tls", leaf, authority, now)

    def text(self, file: str, content: bytes) -> None:
        """Complete a file that follows from others."""
        self._note(file, content)

    def refuse(self, file: str, why: str, hint: str) -> Never:
        """Refuse to go on.

        Raises:
            Damaged: Always.
        """
        raise Damaged(f"{self.place}: {file} can't be used: {why}. Nothing was written. {hint}.")

    def _note(self, file: str, content: bytes, pair: Pair | None = None, why: str = "") -> None:
        """Put a file, and note what became of it."""
        before = self.files.get(file)
        action = "made" if before is None else "kept" if before == content else "renewed"
        self.outcomes.append(Outcome(self.secret, file, action, day(pair.ends) if pair else "", why))
        self._put(file, content)

    def _put(self, file: str, content: bytes) -> None:
        self.files[file] = content


def _rotation(certificate: str) -> str:
    return (
        f"Remove {certificate} (not its key) from the Secret, and run this again: it gets a new certificate with "
        "the same key, which clients of the old one accept. Then restart the control plane, and hand out the "
        "kubeconfig anew"
    )


def _opened(name: str, secret: Obj | None, wanted: Wanted) -> _Folder:
    """Return the files of a Secret.

    Raises:
        Damaged: It isn't ours.
    """
    folder = _Folder(wanted.namespace, name, {})
    if secret is None:
        return folder
    owner = labels_of(secret).get(MARK)
    if owner is None:
        hint = f"If it is to be completed and kept, give it the label {MARK}={wanted.service}; else choose another name"
        raise Damaged(f"{folder.place} is there, but isn't ours. Nothing was written. {hint}.")
    if owner != wanted.service:
        hint = "Choose another name"
        raise Damaged(f"{folder.place} has the certificates of the Service {owner}. Nothing was written. {hint}.")
    folder.files = {file: base64.b64decode(content) for file, content in (secret.get("data") or {}).items()}
    return folder


def _refuse_if_lost(folder: _Folder, signed: Sequence[str]) -> None:
    """Refuse to make everything anew where there are Secrets that it has signed: they were written after it.

    A control plane that runs has its files still, and works on. With new CAs its parts would trust each other no more.

    Raises:
        Damaged: There are.
    """
    precious = {TOKEN_KEY, *(f"{name}.{suffix}" for name in layout.AUTHORITIES for suffix in ("crt", "key"))}
    if not signed or precious & folder.files.keys():
        return
    there = " and ".join(signed)
    hint = f"Restore it from a backup. Or delete {there}, too, and run this again: all is made anew then"
    why = f"has neither a CA nor {TOKEN_KEY}, but what it signed is in {there}"
    raise Damaged(f"{folder.place} {why}. Nothing was written. {hint}.")


def _changed(found: Obj | None, folder: _Folder, wanted: Wanted, service: Obj) -> Obj | None:
    """Return the Secret to write; None if it is as it should be."""
    named = {"name": folder.secret, "namespace": wanted.namespace}
    before = found or {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "Opaque"}
    metadata = {**before["metadata"], "labels": {**labels_of(before), MARK: wanted.service}}
    if wanted.followed is not None and folder.secret == wanted.daemon_secret:
        metadata = _followed(metadata, *wanted.followed)
    owners = [each for each in metadata.pop("ownerReferences", None) or () if not _is_own(each, wanted)]
    if not wanted.keep:
        owner = {"apiVersion": "v1", "kind": "Service", "name": wanted.service, "uid": service["metadata"]["uid"]}
        owners.append(owner)
    if owners:
        metadata["ownerReferences"] = owners
    data = {file: base64.b64encode(content).decode() for file, content in folder.files.items()}
    after = {**before, "metadata": metadata, "data": data}
    return None if after == before else after


def _followed(metadata: Obj, name: str, home: str) -> Obj:
    """Return the metadata of the daemon's Secret, by which daemons find the virtual cluster; none do without a name."""
    ours = (CLUSTER_SECRET, CLUSTER_SECRET_NAME, CLUSTER_SECRET_HOME)
    labels = {key: value for key, value in metadata["labels"].items() if key not in ours}
    given = metadata.get("annotations") or {}
    annotations = {key: value for key, value in given.items() if key not in ours}
    if name:
        labels[CLUSTER_SECRET] = ""
        annotations |= {CLUSTER_SECRET_NAME: name, CLUSTER_SECRET_HOME: home}
    return {**metadata, "labels": labels} | ({"annotations": annotations} if annotations or given else {})


def _is_own(reference: Obj, wanted: Wanted) -> bool:
    return (reference.get("kind"), reference.get("name")) == ("Service", wanted.service)
