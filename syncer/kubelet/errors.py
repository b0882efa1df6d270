"""The one error of the kubelet's server: a request that is refused."""


class RefusedRequest(Exception):
    """A request is answered with an HTTP status and a text.

    The text is for the client, so it contains no names of the host.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
