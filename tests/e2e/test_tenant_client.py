"""The official Python client in a pod, with nothing but what each pod has: variables, token, CA."""

import json
import subprocess
from pathlib import Path

from node_scene import until
from python_image import TAG, write_image
from tenant_scene import Tenant

from hack.realnode import outside

SCRIPT = """
import os
from kubernetes import client, config
config.load_incluster_config()
host, by_name = os.environ["KUBERNETES_SERVICE_HOST"], client.Configuration.get_default_copy()
by_name.host = "https://kubernetes.default.svc.cluster.local"
user = client.AuthenticationV1Api().create_self_subject_review({}).status.user_info.username
pods = [pod.metadata.name for pod in client.CoreV1Api(client.ApiClient(by_name)).list_namespaced_pod("python").items]
open("/dev/termination-log", "w").write(f"at {host} {user} sees {pods}")
"""
RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: python}]
"""


def pod() -> str:
    """Return a Pod that runs the script."""
    container = {
        "name": "client",
        "image": TAG,
        "imagePullPolicy": "Never",
        "args": ["-c", SCRIPT],
        "env": [{"name": "PYTHONPATH", "value": "/client"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that a failure shows its traceback
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": spec})


def test_python_client_in_a_pod_is_served_by_the_virtual_api_server(tenant: Tenant, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", tmp_path / "client")
    subprocess.run(["gzip", "-1", tmp_path / "image.tar"], check=True, timeout=600)
    outside.load(tenant.host.site, [tmp_path / "image.tar.gz"])
    with tenant.namespace("python", RIGHTS, pod()):

        def ended() -> str:
            path = "{.status.containerStatuses[0].state.terminated.message}"
            return tenant.kubectl("get", "pod", "client", "-n=python", f"-o=jsonpath={path}")

        until("the client ended", lambda: ended() != "")
        assert ended() == f"at {tenant.api_address} system:serviceaccount:python:default sees ['client']"
