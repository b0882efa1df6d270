"""A release of charts/syncer on a real host API server, and its pods, run as a kubelet would."""

import base64
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from api import PATIENCE, eventually
from scene import API_SERVER, Scene

from hack.bench.daemon import SYNCER, Process
from hack.realnode import builds
from kube_envtest.controlplane.processes import spawn
from syncer.api import Key, Obj, annotations_of, dig

CHART = Path(__file__).parents[2] / "charts" / "syncer"
#: As the chart names them.
RELEASE, SECRET = "syncer", "kubeconfig"
#: The user of the virtual cluster as whom the daemon logs in there.
USER = "daemon"
#: Short, so that a takeover can be waited for.
ELECTION = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}
_ENFORCED = "pod-security.kubernetes.io/enforce"
_numbers = itertools.count(1)


class Replica(Process):
    """The daemon of a pod: its arguments, environment and files, and the token of its ServiceAccount."""

    def __init__(
        self, pod: Obj, container: Obj, folder: Path, host_kubeconfig: Path, files: Callable[[Obj], Mapping[str, str]]
    ) -> None:
        super().__init__({}, folder)
        self._host_kubeconfig, self._container = host_kubeconfig, container
        self.name, self._namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        self._files = files
        self._mounted = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        self._folders = {path: folder / path.strip("/") for path in self._mounted}
        self._there = re.compile(rf"(?<![\w/])({'|'.join(map(re.escape, self._folders))})(?![\w-])")
        for mounted in self._folders.values():
            mounted.mkdir(parents=True)
        self.mount()

    def mount(self) -> None:
        """Write the contents of the volumes as they are now."""
        for path, folder in self._folders.items():
            for name, content in self._files(self._volumes[self._mounted[path]]).items():
                (folder / name).write_text(self._here(content))

    def share(self, path: str, other: "Replica") -> None:
        """Show another container of the pod what this one has written into a volume that both have at this path."""
        shutil.copytree(self._folders[path], other._folders[path], dirs_exist_ok=True)

    def run_pip(self, wheels: Path) -> None:
        """Run the container's command, which is pip's, with these wheels as the index."""
        program, *arguments = map(self._here, self._container["command"])
        assert program == "pip"
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
        command = [sys.executable, "-m", "pip", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr

    def _here(self, text: str) -> str:
        """Return a text with the paths of this machine instead of those in the container."""
        return self._there.sub(lambda found: str(self._folders[found[1]]), text)

    def environment(self) -> dict[str, str]:
        """Return the environment of the container, where the host's login is a kubeconfig instead of mounted files."""
        fields = {"metadata.namespace": self._namespace}
        given = {
            each["name"]: self._here(each["value"])
            if "value" in each
            else fields[dig(each, "valueFrom.fieldRef.fieldPath")]
            for each in self._container["env"]
        }
        pages = {"METRICS": f"127.0.0.1:{self.port}", "HEALTH": f"127.0.0.1:{self.health}"}
        pages["PAGE"] = "127.0.0.1:0"
        own = {f"SYNCER_{name}_ADDRESS": address for name, address in pages.items()}
        own |= {"SYNCER_HOST_KUBECONFIG": str(self._host_kubeconfig), "POD_NAME": self.name}
        if (plugins := self.folder / "plugins").exists():
            own["SYNCER_PLUGINS_FOLDER"] = str(plugins)  # as the image says
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), **given, **own}

    def arguments(self) -> list[str]:
        """Return the command line of the container, with its environment."""
        variables = [f"{name}={value}" for name, value in self.environment().items()]
        return ["env", "-i", *variables, SYNCER, *map(self._here, self._container["args"])]

    def write(self) -> None:
        """Leave the configuration as the volume has it."""

    def spawn(self) -> None:
        """Start it without waiting."""
        self.process = spawn(self.arguments(), self.log, self.folder)

    def once(self) -> "subprocess.CompletedProcess[str]":
        """Run it to its end, as a container that isn't to stay."""
        return subprocess.run(self.arguments(), capture_output=True, text=True, timeout=PATIENCE, check=False)


@dataclass
class Release:
    """A release of the chart for the virtual cluster of a scene, in a namespace that enforces *restricted*."""

    scene: Scene
    folder: Path
    namespace: str = field(default_factory=lambda: f"plane-{next(_numbers)}")
    secret: str = SECRET

    @property
    def daemon(self) -> str:
        """The name of the objects of the daemon, if the release is named so."""
        return f"{RELEASE}-{self.scene.name}"

    def prepare(self) -> None:
        """Make the namespace and the Secret with the virtual cluster's kubeconfig, as the chart's README says."""
        metadata = {"name": self.namespace, "labels": {_ENFORCED: "restricted"}}
        self.kubectl(
            "create", "-f", "-", stdin=yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        )
        self.make_secret()

    def make_secret(self) -> None:
        """Make the Secret with the virtual cluster's kubeconfig."""
        kubeconfig = self.scene.virtual.plane.kubeconfig(USER)
        self.kubectl("create", "secret", "generic", self.secret, f"--from-file=config={kubeconfig}")

    def values(self, **config: Any) -> Obj:
        """Return the values for Helm, with more of the daemon's configuration."""
        return {
            "virtualClusters": [
                {
                    "name": self.scene.name,
                    "hostNamespace": self.scene.host_namespace,
                    "kubeconfigSecret": {"name": self.secret, "key": "config"},
                }
            ],
            "config": {
                "networking": {"apiServer": {"host": API_SERVER}},
                "leaderElection": ELECTION,
                "control": {"socket": "0"},
                **config,
            },
        }

    def helm(self, *arguments: str, values: Obj | None = None) -> str:
        """Run Helm; return its output."""
        with self.helping(*arguments, values=values) as running:
            output, complaint = running.communicate(timeout=PATIENCE)
        assert running.returncode == 0, complaint
        return output

    def helping(self, *arguments: str, values: Obj | None = None) -> "subprocess.Popen[str]":
        """Start Helm."""
        command = [str(builds.tool("helm")), *arguments, f"--namespace={self.namespace}"]
        command += [f"--kubeconfig={self.scene.host.plane.kubeconfig()}"]
        if values:
            file = self.folder / "values.yaml"
            file.write_text(yaml.safe_dump(values))
            command += [f"--values={file}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl on the host, in the namespace of the release; return its output."""
        command = ("--namespace", self.namespace, *arguments)
        return str(self.scene.host.plane.kubectl(*command, stdin=stdin).stdout)

    def objects(self, kind: str, selector: str = "") -> list[Obj]:
        """Return the objects of a kind, such as ``Pod``, in the namespace of the release.

        It is polled, and a process of kubectl for each time would take the CPU from the daemons.
        """
        return self.scene.host.list(kind, namespace=self.namespace, selector=selector)

    def leases(self) -> list[Obj]:
        """Return the Leases beside the copies."""
        return self.scene.host.list("Lease", namespace=self.scene.host_namespace)

    def bind(self, other: "Release", account: str) -> None:
        """Give a ServiceAccount of this release the roles of another one."""
        user = f"system:serviceaccount:{self.namespace}:{account}"
        for kind in ("rolebindings", "clusterrolebindings"):
            found = yaml.safe_load(other.kubectl("get", kind, "--all-namespaces", "--output=yaml"))["items"]
            for each in found:
                metadata = each["metadata"]
                if annotations_of(each).get("meta.helm.sh/release-namespace") == other.namespace:
                    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]
                    placed = {name: metadata[name] for name in ("namespace",) if name in metadata}
                    made = {**each, "metadata": {"name": f"{metadata['name']}-too", **placed}, "subjects": subjects}
                    self.kubectl(
                        "create",
                        *(f"--namespace={namespace}" for namespace in placed.values()),
                        "-f",
                        "-",
                        stdin=yaml.safe_dump(made),
                    )

    def pods(self) -> list[Obj]:
        """Return the pods of the virtual cluster's Deployment that aren't being deleted."""
        found = self.objects("Pod", f"vsyncer.dev/part=syncer,vsyncer.dev/serves={self.scene.name}")
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def pods_with(self, config: str) -> list[Obj]:
        """Return those of a configuration, which is named by its checksum."""
        return [each for each in self.pods() if annotations_of(each).get("vsyncer.dev/config") == config]

    def config(self) -> str:
        """Return the checksum of the configuration of the Deployment."""
        [deployment] = self.objects("Deployment")
        return str(annotations_of(deployment["spec"]["template"])["vsyncer.dev/config"])

    def made(self, count: int) -> list[Obj]:
        """Return the pods as soon as there are so many; an admission that refuses one says so."""
        try:
            return eventually(lambda: found if len(found := self.pods()) == count else None, f"there are {count} pods")
        except AssertionError as error:
            output = [each["message"] for each in self.objects("Event") if each["reason"] == "FailedCreate"]
            raise AssertionError(f"{error}; {output}") from None

    # -- as a kubelet ------------------------------------------------------------------------------

    def replica(self, pod: Obj, container: Obj | None = None) -> Replica:
        """Return a container of a pod, by default the only one; it isn't started yet."""
        found = container or pod["spec"]["containers"][0]
        folder = self.folder / f"{pod['metadata']['name']}-{found['name']}-{len(self.scene.daemons)}"
        folder.mkdir()
        made = Replica(pod, found, folder, self._login(pod["spec"]["serviceAccountName"]), self._files)
        self.scene.daemons.append(made)
        return made

    def _files(self, volume: Obj) -> Mapping[str, str]:
        if name := dig(volume, "configMap.name"):
            return dict(yaml.safe_load(self.kubectl("get", "configmap", name, "--output=yaml"))["data"])
        if name := dig(volume, "secret.secretName"):
            found = yaml.safe_load(self.kubectl("get", "secret", name, "--output=yaml", "--ignore-not-found")) or {}
            assert found or volume["secret"]["optional"], f"there is no Secret {name}"
            data = found.get("data", {})
            return {key: base64.b64decode(content).decode() for key, content in data.items()}
        assert "emptyDir" in volume or "projected" in volume, volume  # the token, which is in the kubeconfig here
        return {}

    def _login(self, account: str) -> Path:
        """Return a kubeconfig of the host with a token of a ServiceAccount."""
        document = yaml.safe_load(self.scene.host.plane.kubeconfig().read_text())
        token = self.kubectl("create", "token", account, "--duration=1h").strip()
        document["users"][0]["user"] = {"token": token}
        file = self.folder / f"{account}.kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return file

    def allow(self, replica: Replica) -> None:
        """Give the daemon its rights in the virtual cluster, as the notes of the chart say."""
        command = [SYNCER, "rbac", "--side=virtual", f"--user={USER}"]
        done = subprocess.run(
            command, env=replica.environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        self.scene.give(self.scene.virtual, done.stdout)

    def pod_of(self, job: str) -> Obj:
        """Return the pod of a Job as soon as there is one."""
        [pod] = eventually(lambda: self.objects("Pod", f"batch.kubernetes.io/job-name={job}"), f"{job} has a pod")
        return pod

    def run_kubectl(self, pod: Obj, container: Obj) -> None:
        """Run a container of kubectl to its end, with the token of its pod's ServiceAccount."""
        login = self._login(pod["spec"]["serviceAccountName"])
        self.scene.host.plane.kubectl(f"--kubeconfig={login}", *container["args"])

    def report(self, name: str, phase: str, *, ready: bool = False) -> None:
        """Report how a pod is, or has ended, as its kubelet does.

        Raises:
            Missing: The pod is gone.
        """
        conditions = [{"type": "Ready", "status": "True"}] if ready else []
        patch: Obj = {"status": {"phase": phase, "conditions": conditions}}
        self.scene.host.patch("Pod", Key(self.namespace, name), patch, subresource="status")
