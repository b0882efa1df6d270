"""The one error of the kubelet's server: a request that isn't done, and why."""


class RefusedRequest(Exception):
    """A request is answered with a status and a text for the client, which names nothing of the
    host.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
