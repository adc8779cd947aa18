"""What an agent's machine needs: a local store, a client, the command `cq`. No server."""

VERSION = "0.1.0"
__all__ = ["VERSION", "Client", "CqError"]


def __getattr__(name):
    """`from cq import Client`: imported only by those who ask for it, since every command starts
    with this module.
    """
    if name == "Client":
        from cq.client import Client

        return Client
    if name == "CqError":
        from cq.failures import CqError

        return CqError
    raise AttributeError(f"module 'cq' has no attribute {name!r}")
