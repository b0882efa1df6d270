"""The Pod Security Standards, as a function of a Pod.

A host that enforces them itself has the last word. This check is for hosts that don't, and it
answers the tenant before anything is sent. The rules are those of Kubernetes 1.35 and 1.36, one
function each: https://kubernetes.io/docs/concepts/security/pod-security-standards/.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from syncer.api import Obj, annotations_of
from syncer.resources.pods.fields import CONTAINERS

#: A level of the standards; each contains the one before.
SecurityLevel = Literal["privileged", "baseline", "restricted"]

#: Capabilities that a container may add.
_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SELINUX_TYPES = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
#: Profile types that confine a container: seccomp's and AppArmor's.
_CONFINED = ("RuntimeDefault", "Localhost")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
#: Volume types that a restricted Pod may have, besides its ``name``.
_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)


class _Checked:
    """A Pod, with the parts that most rules read, found once."""

    __slots__ = ("containers", "contexts", "of_containers", "own_users", "pod", "spec")

    def __init__(self, pod: Obj, *, user_namespaces: bool) -> None:
        self.pod = pod
        self.spec = pod.get("spec") or {}
        #: True if its users are none of the node's: root in the Pod has no rights there.
        self.own_users = user_namespaces and self.spec.get("hostUsers") is False
        self.containers: list[Obj] = []
        #: The security context of each container, with the container's name in words.
        self.of_containers: list[tuple[str, Obj]] = []
        for part in CONTAINERS:
            for container in self.spec.get(part) or ():
                where = f"container {container.get('name')}"
                self.containers.append(container)
                self.of_containers.append((where, container.get("securityContext") or {}))
        #: The security context of the Pod, and those of its containers.
        self.contexts = [("the Pod", self.spec.get("securityContext") or {}), *self.of_containers]


#: Yields a phrase for each field that breaks a rule.
SecurityRule = Callable[[_Checked], Iterator[str]]


def violations(level: SecurityLevel, pod: Obj, *, user_namespaces: bool = True) -> list[str]:
    """Return a phrase for each way in which a Pod breaks a level; empty if it keeps to it.

    Args:
        level: The level.
        pod: The Pod.
        user_namespaces: Whether the API server for which the Pod is keeps ``hostUsers: false``,
            which lifts some rules. One that doesn't know the field drops it, and the Pod would be
            root of the node.
    """
    rules: tuple[SecurityRule, ...] = ()
    if level != "privileged":
        rules = _BASELINE
    if level == "restricted":
        rules = (*_BASELINE, *_RESTRICTED)
    checked = _Checked(pod, user_namespaces=user_namespaces)
    phrases: dict[str, None] = {}
    for rule in rules:
        phrases |= dict.fromkeys(rule(checked))
    return list(phrases)


# -- baseline --------------------------------------------------------------------------------------


def _host_process(checked: _Checked) -> Iterator[str]:
    for where, context in checked.contexts:
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield f"{where} is a HostProcess"


def _host_namespaces(checked: _Checked) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if checked.spec.get(field):
            yield f"spec.{field} is true"


def _privileged(checked: _Checked) -> Iterator[str]:
    for where, context in checked.of_containers:
        if context.get("privileged"):
            yield f"{where} is privileged"


def _capabilities(checked: _Checked) -> Iterator[str]:
    for where, context in checked.of_containers:
        yield from _added(where, context, _CAPABILITIES)


def _host_paths(checked: _Checked) -> Iterator[str]:
    for volume in checked.spec.get("volumes") or ():
        if volume.get("hostPath") is not None:
            yield f"volume {volume.get('name')} is a hostPath"


def _host_ports(checked: _Checked) -> Iterator[str]:
    for container in checked.containers:
        if any(port.get("hostPort") for port in container.get("ports") or ()):
            yield f"container {container.get('name')} has a hostPort"


def _probes(checked: _Checked) -> Iterator[str]:
    for container in checked.containers:
        hooks = container.get("lifecycle") or {}
        probes = [container.get(name) for name in _PROBES]
        actions = [*probes, *(hooks.get(name) for name in _HOOKS)]
        for action in actions:
            if not action:
                continue
            if any((action.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
                yield f"a probe or hook of container {container.get('name')} has a host"


def _app_armor(checked: _Checked) -> Iterator[str]:
    for where, context in checked.contexts:
        profile = context.get("appArmorProfile")
        if profile and profile.get("type") not in _CONFINED:
            yield f"{where} has the AppArmor profile {profile.get('type')}"
    for key, value in annotations_of(checked.pod).items():
        if not key.startswith(_APPARMOR) or not value:
            continue
        if value != "runtime/default" and not value.startswith("localhost/"):
            yield f"an annotation gives a container the AppArmor profile {value}"


def _se_linux(checked: _Checked) -> Iterator[str]:
    for where, context in checked.contexts:
        options = context.get("seLinuxOptions") or {}
        kind = options.get("type")
        if kind and kind not in _SELINUX_TYPES:
            yield f"{where} has the SELinux type {kind}"
        for field in ("user", "role"):
            if options.get(field):
                yield f"{where} has an SELinux {field}"


def _proc_mount(checked: _Checked) -> Iterator[str]:
    if not checked.own_users:
        yield from _proc_unmasked(checked)


def _seccomp(checked: _Checked) -> Iterator[str]:
    for where, context in checked.contexts:
        profile = context.get("seccompProfile")
        if profile and profile.get("type") not in _CONFINED:
            yield f"{where} has the seccomp profile {profile.get('type')}"


def _sysctls(checked: _Checked) -> Iterator[str]:
    for sysctl in (checked.spec.get("securityContext") or {}).get("sysctls") or ():
        if sysctl.get("name") not in _SYSCTLS:
            yield f"it sets the sysctl {sysctl.get('name')}"


# -- restricted ------------------------------------------------------------------------------------


def _volume_types(checked: _Checked) -> Iterator[str]:
    for volume in checked.spec.get("volumes") or ():
        for kind in sorted(volume.keys() - _VOLUMES - {"name"}):
            yield f"volume {volume.get('name')} is of type {kind}"


def _escalation(checked: _Checked) -> Iterator[str]:
    if _is_windows(checked.spec):
        return
    for where, context in checked.of_containers:
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{where} must set allowPrivilegeEscalation: false"


def _non_root(checked: _Checked) -> Iterator[str]:
    if checked.own_users:
        return
    of_pod = (checked.spec.get("securityContext") or {}).get("runAsNonRoot")
    if of_pod is False:
        yield "the Pod must not set runAsNonRoot: false"
    for where, context in checked.of_containers:
        if context.get("runAsNonRoot", of_pod) is not True:
            yield f"{where} must set runAsNonRoot: true"


def _root_user(checked: _Checked) -> Iterator[str]:
    if checked.own_users:
        return
    for where, context in checked.contexts:
        if context.get("runAsUser") == 0:
            yield f"{where} must not set runAsUser: 0"


def _seccomp_given(checked: _Checked) -> Iterator[str]:
    of_pod = (checked.spec.get("securityContext") or {}).get("seccompProfile")
    if of_pod or _is_windows(checked.spec):
        return
    for where, context in checked.of_containers:
        if not context.get("seccompProfile"):
            yield f"{where} must set the seccomp profile RuntimeDefault or Localhost"


def _capabilities_dropped(checked: _Checked) -> Iterator[str]:
    if _is_windows(checked.spec):
        return
    for where, context in checked.of_containers:
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            yield f"{where} must drop the capabilities ALL"
        yield from _added(where, context, frozenset({"NET_BIND_SERVICE"}))


# -- inside ----------------------------------------------------------------------------------------


def _proc_unmasked(checked: _Checked) -> Iterator[str]:
    for where, context in checked.of_containers:
        if context.get("procMount", "Default") not in ("Default", None):
            yield f"{where} has the procMount {context['procMount']}"


def _added(where: str, context: Obj, allowed: frozenset[str]) -> Iterator[str]:
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability not in allowed:
            yield f"{where} adds the capability {capability}"


def _is_windows(spec: Obj) -> bool:
    """Return True for a Pod to which rules about Linux don't apply."""
    return (spec.get("os") or {}).get("name") == "windows"


_BASELINE: tuple[SecurityRule, ...] = (
    _host_process,
    _host_namespaces,
    _privileged,
    _capabilities,
    _host_paths,
    _host_ports,
    _probes,
    _app_armor,
    _se_linux,
    _proc_mount,
    _seccomp,
    _sysctls,
)
_RESTRICTED: tuple[SecurityRule, ...] = (
    _proc_unmasked,
    _volume_types,
    _escalation,
    _non_root,
    _root_user,
    _seccomp_given,
    _capabilities_dropped,
)
