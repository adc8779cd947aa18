"""What can go wrong on an agent's machine, as one tree; each text says what, and what now."""


class CqError(Exception):
    """Something was refused or failed."""


class Invalid(CqError):
    """The unit or the question breaks rules: `problems` tells each in a line."""

    def __init__(self, problems):
        super().__init__("\n".join(problems))
        self.problems = problems


class Unsafe(CqError):
    """The text holds what must not leave this machine: `findings`."""

    def __init__(self, findings):
        super().__init__("\n".join(f"{each.field}: {each.text}" for each in findings))
        self.findings = findings


class NotFound(CqError):
    """No such unit here, nor on the node if there is one."""


class NoNode(CqError):
    """This needs a node, and none is configured or none answers."""


class RemoteFailure(CqError):
    """`status` and `detail` are the node's where it gave them; `retry_after` is in seconds."""

    def __init__(self, message, status=None, detail="", retry_after=None):
        super().__init__(message)
        self.status, self.detail, self.retry_after = status, detail, retry_after


class NoAnswer(RemoteFailure):
    """Nothing that settles it: no connection, no time, no access, a fault, an unreadable answer."""


class BadAddress(NoAnswer):
    """CQ_ADDR is no address of a node."""


class DiscoveryFailed(NoAnswer):
    """It could not be learned where the node's API lives."""


class AppliedUnreadable(NoAnswer):
    """The node did it, and its answer cannot be read."""


class Refused(RemoteFailure):
    """The node looked at the content and said no."""
