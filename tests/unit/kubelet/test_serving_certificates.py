"""The serving certificate: signed by the virtual cluster, or by itself."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from cryptography import x509
from single_requests import SingleRequests

from syncer.api.objects import Side
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse
from syncer.kubelet import certificates
from syncer.kubelet.certificates import NotSigned, Serving, self_signed, signed
from syncer.kubelet.users import of_certificate


class Signer(SingleRequests):
    """An API server with a signer, which gives any certificate or refuses."""

    def __init__(self, status: Any) -> None:
        self.status, self.calls = status, list[tuple[str, str]]()
        self.request: Any = None

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.calls.append((request.method, request.path.partition("?")[0].rpartition("requests")[2]))
        if request.method == "POST":
            self.request = json.loads(request.body or b"")
            return HttpResponse(201, {}, json.dumps({**self.request, "metadata": {"name": "r"}}).encode())
        return HttpResponse(200, {}, json.dumps({"metadata": {"name": "r"}, "status": self.status}).encode())


async def test_request_suits_the_signer_and_is_approved_and_deleted() -> None:
    pem = trustme.CA().issue_cert("10.0.0.1").cert_chain_pems[0].bytes()
    signer = Signer({"certificate": base64.b64encode(pem).decode()})
    serving = await signed(SideClient("v", Side.VIRTUAL, signer), ["10.0.0.1", "syncer.example"])
    assert serving.certificate == pem
    assert signer.calls == [("POST", ""), ("PUT", "/r/approval"), ("GET", "/r"), ("DELETE", "/r")]
    spec = signer.request["spec"]
    assert (spec["signerName"], spec["usages"]) == (certificates.SIGNER, ["digital signature", "server auth"])
    request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
    assert request.subject.rfc4514_string() == "CN=system:node:vsyncer,O=system:nodes"
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["10.0.0.1", "syncer.example"]


async def test_denied_request_is_not_signed() -> None:
    signer = Signer({"conditions": [{"type": "Denied", "message": "by policy"}]})
    with pytest.raises(NotSigned, match="by policy"):
        await signed(SideClient("v", Side.VIRTUAL, signer), ["10.0.0.1"])
    assert signer.calls[-1] == ("DELETE", "/r")


async def test_unsigned_request_raises_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "SIGNING_SECONDS", 0.1)
    with pytest.raises(NotSigned, match="--cluster-signing-cert-file"):
        await signed(SideClient("v", Side.VIRTUAL, Signer({})), ["10.0.0.1"])


def test_certificate_is_renewed_before_it_ends() -> None:
    serving = self_signed(["10.0.0.1"])
    left = serving.renew_at - datetime.now(UTC)
    assert timedelta(days=250) < left < timedelta(days=260)
    certificates.context(serving, b"")


def test_certificate_must_be_one() -> None:
    with pytest.raises(ValueError, match="no certificate"):
        Serving.of(b"nothing", b"")


def test_user_of_a_certificate_is_its_common_name() -> None:
    subject = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "x"),))
    user = of_certificate({"subject": subject})
    assert user is not None
    assert (user.name, user.groups) == ("x", ("a", "b", "system:authenticated"))
    assert of_certificate({"subject": ((("organizationName", "a"),),)}) is None
