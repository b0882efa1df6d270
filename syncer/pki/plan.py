"""Decide, from the Secrets that are there and the Service, which Secrets to write.

Nothing is fetched or stored here. A CA and the key of the tokens are made only if nothing of them
is there. One that can't be used is refused, and nothing is written: all clients that trust it would
be lost. A certificate is no loss: its CA can sign another.
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
from syncer.pki.certificates import LIFE, KeyPair, Leaf, PrivateKey, Unusable, day
from syncer.pki.layout import MARK, PkiSettings, ServiceName

#: The file of the key that signs tokens of ServiceAccounts.
TOKEN_KEY = "sa.key"  # noqa: S105 - a name of a file
#: The file of the keys that verify them.
TOKEN_PUBLIC = "sa.pub"  # noqa: S105 - a name of a file


class Damaged(SyncerError):
    """A Secret can't be used as it is; nothing was written."""


class FileOutcome(NamedTuple):
    """The result for a file of a Secret."""

    secret: str
    file: str
    #: ``kept``, ``made`` or ``renewed``.
    action: str
    #: The day on which the certificate ends; ``""`` for a file that doesn't end.
    ends: str = ""
    #: The reason of the action; ``""`` for none.
    why: str = ""


class SecretStep(NamedTuple):
    """A Secret with the results for its files."""

    #: The Secret to write; None if it stays unchanged. With a resourceVersion, it replaces that
    #: version.
    write: Obj | None
    outcomes: list[FileOutcome]


@dataclass(frozen=True, slots=True)
class SecretsPlan:
    """The Secrets, in the order in which they are written."""

    steps: list[SecretStep]
    warnings: list[str]
    address: ServiceName


def plan(wanted: PkiSettings, service: Obj, found: Mapping[str, Obj], now: datetime) -> SecretsPlan:
    """Return the Secrets to write.

    Args:
        wanted: The settings.
        service: The Service in front of the virtual API server.
        found: The Secrets that are there already, by name.
        now: The time.

    Raises:
        Damaged: A Secret can't be used.
    """
    address = layout.address_of(service)
    main = _opened(wanted.secret, found.get(wanted.secret), wanted)
    tenant = _opened(wanted.kubeconfig_secret, found.get(wanted.kubeconfig_secret), wanted)
    daemon = _opened(wanted.daemon_secret, found.get(wanted.daemon_secret), wanted)
    _refuse_if_lost(main, [each.secret for each in (tenant, daemon) if each.secret in found])

    authority = _complete(main, wanted, address, now)
    tenant.client(Leaf(layout.ADMIN, layout.ADMINS), authority, now)
    tenant.text("config", layout.tenant_kubeconfig(wanted, address, tenant.files))
    daemon.client(Leaf(layout.DAEMON, layout.DAEMONS), authority, now)
    daemon.text("config", layout.daemon_kubeconfig(wanted, address))

    steps: list[SecretStep] = []
    for folder in (main, tenant, daemon):
        write = _changed(found.get(folder.secret), folder, wanted, service)
        steps.append(SecretStep(write, folder.outcomes))
    return SecretsPlan(steps, main.warnings, address)


def _complete(
    folder: "_Folder",
    wanted: PkiSettings,
    address: ServiceName,
    now: datetime,
) -> KeyPair:
    """Complete the files of the control plane; return the CA of its clients."""
    authorities: dict[str, KeyPair] = {}
    for name, common_name in layout.AUTHORITIES.items():
        authorities[name] = folder.authority(name, common_name, now)
    folder.token_keys()
    for name, (authority, leaf) in layout.leaves(wanted, address).items():
        folder.leaf(name, leaf, authorities[authority], now)
    for program in layout.LOCAL_PROGRAMS:
        folder.text(f"{program}.conf", layout.local_kubeconfig(wanted, program))
    folder.text("super-admin.conf", layout.super_admin_kubeconfig(wanted, address, folder.files))
    return authorities["ca"]


@dataclass(slots=True)
class _Folder:
    """The files of a Secret, while they are completed."""

    namespace: str
    secret: str
    files: dict[str, bytes]
    outcomes: list[FileOutcome] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def secret_name(self) -> str:
        """The Secret, as messages name it."""
        return f"Secret {self.namespace}/{self.secret}"

    def authority(self, name: str, common_name: str, now: datetime) -> KeyPair:
        """Return a CA: the one that is there, or a new one.

        If its key alone is there, it gets a new certificate: clients of the old one trust the
        certificates that it signs.
        """
        certificate = f"{name}.crt"
        key = f"{name}.key"
        is_there = certificate in self.files
        has_key = key in self.files
        why = ""
        try:
            if is_there:
                if not has_key:
                    raise Unusable(f"{key} is missing")
                pair = certificates.read_pair(self.files[certificate], self.files[key])
                content = self.files[certificate]
            else:
                known = None
                if has_key:
                    known = certificates.read_key(self.files[key])
                    why = "with the key that was there"
                pair = certificates.new_authority(common_name, now, known)
                content = pair.certificate_pem
            if not certificates.is_authority(pair):
                raise Unusable("it isn't the certificate of a CA")
        except Unusable as error:
            restore = f"Restore {certificate} and {key} from a backup"
            remove = "Or remove both from the Secret, and run this again"
            result = "there is a new CA then, which no client of the old one trusts"
            self.refuse(certificate, str(error), f"{restore}. {remove}: {result}")

        if pair.begins > now:
            begins = f"{pair.begins:%Y-%m-%d %H:%M}Z"
            why = f"it is valid only from {begins} on"
            self.refuse(certificate, why, "Is a clock wrong? Set it")
        if pair.ends <= now:
            self.refuse(certificate, f"it ended on {day(pair.ends)}", _rotation(certificate))
        if pair.ends - now < LIFE:
            ends = f"{certificate} ends on {day(pair.ends)}"
            limit = "and its certificates end no later"
            self.warnings.append(f"{self.secret_name}: {ends}, {limit}. {_rotation(certificate)}.")

        if not has_key:
            self._put(key, pair.key_pem)
        self._note(certificate, content, pair, why)
        return pair

    def token_keys(self) -> None:
        """Complete the keys by which tokens of ServiceAccounts are signed and verified.

        The public file may hold further keys, by which tokens of former private ones stay valid.
        """
        has_key = TOKEN_KEY in self.files
        has_public = TOKEN_PUBLIC in self.files
        key: PrivateKey
        try:
            if has_key:
                key = certificates.read_key(self.files[TOKEN_KEY])
                content = self.files[TOKEN_KEY]
            else:
                if has_public:
                    raise Unusable("it is missing")
                key = certificates.new_key()
                content = certificates.key_pem(key)
        except Unusable as error:
            remove = f"Or remove {TOKEN_KEY} and {TOKEN_PUBLIC} from the Secret"
            result = "all tokens are void then, and are issued again"
            hint = f"Restore it from a backup. {remove}: {result}"
            self.refuse(TOKEN_KEY, str(error), hint)

        public = certificates.public_pem(key)
        if has_public:
            if not certificates.holds(self.files[TOKEN_PUBLIC], public):
                remove = f"remove {TOKEN_PUBLIC} from the Secret, and run this again"
                hint = f"Append that, or {remove}: it is made from the key"
                self.refuse(TOKEN_PUBLIC, f"it lacks the public key of {TOKEN_KEY}", hint)
            public = self.files[TOKEN_PUBLIC]
        self._note(TOKEN_KEY, content)
        self._note(TOKEN_PUBLIC, public)

    def leaf(self, name: str, leaf: Leaf, authority: KeyPair, now: datetime) -> None:
        """Complete a certificate and its key: keep those that are there, or replace both."""
        certificate = f"{name}.crt"
        key = f"{name}.key"
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

    def client(self, leaf: Leaf, authority: KeyPair, now: datetime) -> None:
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
        problem = f"{file} can't be used: {why}"
        raise Damaged(f"{self.secret_name}: {problem}. Nothing was written. {hint}.")

    def _note(self, file: str, content: bytes, pair: KeyPair | None = None, why: str = "") -> None:
        """Put a file, and note the result."""
        before = self.files.get(file)
        if before is None:
            action = "made"
        elif before == content:
            action = "kept"
        else:
            action = "renewed"
        ends = day(pair.ends) if pair else ""
        self.outcomes.append(FileOutcome(self.secret, file, action, ends, why))
        self._put(file, content)

    def _put(self, file: str, content: bytes) -> None:
        self.files[file] = content


def _rotation(certificate: str) -> str:
    return (
        f"Remove {certificate} (not its key) from the Secret, and run this again: it gets a new "
        "certificate with the same key, which clients of the old one accept. Then restart the "
        "control plane, and hand out the kubeconfig again"
    )


def _opened(name: str, secret: Obj | None, wanted: PkiSettings) -> _Folder:
    """Return the files of a Secret.

    Raises:
        Damaged: It isn't ours.
    """
    folder = _Folder(wanted.namespace, name, {})
    if secret is None:
        return folder
    owner = labels_of(secret).get(MARK)
    if owner is None:
        label = f"{MARK}={wanted.service}"
        keep = f"If it is to be completed and kept, give it the label {label}"
        hint = f"{keep}; else choose another name"
        why = "is there, but isn't ours"
        raise Damaged(f"{folder.secret_name} {why}. Nothing was written. {hint}.")
    if owner != wanted.service:
        why = f"has the certificates of the Service {owner}"
        raise Damaged(f"{folder.secret_name} {why}. Nothing was written. Choose another name.")
    data = secret.get("data") or {}
    folder.files = {file: base64.b64decode(content) for file, content in data.items()}
    return folder


def _refuse_if_lost(folder: _Folder, signed: Sequence[str]) -> None:
    """Refuse to make new CAs where there are Secrets with certificates of the old ones.

    These were written after it, so the Secret of the CAs is lost. A control plane that runs has its
    files still, and works on. With new CAs its parts would no longer trust each other.

    Raises:
        Damaged: There are such Secrets.
    """
    precious = {TOKEN_KEY}
    for name in layout.AUTHORITIES:
        precious.add(f"{name}.crt")
        precious.add(f"{name}.key")
    if not signed or precious & folder.files.keys():
        return
    there = " and ".join(signed)
    why = f"has neither a CA nor {TOKEN_KEY}, but certificates that it signed are in {there}"
    delete = f"Or delete {there}, too, and run this again: all files are replaced then"
    hint = f"Restore it from a backup. {delete}"
    raise Damaged(f"{folder.secret_name} {why}. Nothing was written. {hint}.")


def _changed(found: Obj | None, folder: _Folder, wanted: PkiSettings, service: Obj) -> Obj | None:
    """Return the Secret to write; None if it is as it should be."""
    before = found or {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": folder.secret, "namespace": wanted.namespace},
        "type": "Opaque",
    }
    metadata = {**before["metadata"], "labels": {**labels_of(before), MARK: wanted.service}}
    if wanted.followed is not None and folder.secret == wanted.daemon_secret:
        metadata = _followed(metadata, *wanted.followed)

    # The Service may have been recreated, with another UID.
    own = ("Service", wanted.service)
    known = metadata.pop("ownerReferences", None) or ()
    owners = [each for each in known if (each.get("kind"), each.get("name")) != own]
    if not wanted.keep:
        owner = {
            "apiVersion": "v1",
            "kind": "Service",
            "name": wanted.service,
            "uid": service["metadata"]["uid"],
        }
        owners.append(owner)
    if owners:
        metadata["ownerReferences"] = owners

    data = {file: base64.b64encode(content).decode() for file, content in folder.files.items()}
    after = {**before, "metadata": metadata, "data": data}
    if after == before:
        return None
    return after


def _followed(metadata: Obj, name: str, home: str) -> Obj:
    """Return the metadata of the daemon's Secret, by which daemons find the virtual cluster.

    Without a name, no daemon finds it.
    """
    ours = (CLUSTER_SECRET, CLUSTER_SECRET_NAME, CLUSTER_SECRET_HOME)
    labels = {key: value for key, value in metadata["labels"].items() if key not in ours}
    given = metadata.get("annotations") or {}
    annotations = {key: value for key, value in given.items() if key not in ours}
    if name:
        labels[CLUSTER_SECRET] = ""
        annotations |= {CLUSTER_SECRET_NAME: name, CLUSTER_SECRET_HOME: home}

    result = {**metadata, "labels": labels}
    if annotations or given:
        result["annotations"] = annotations
    return result
