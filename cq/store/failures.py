"""What can go wrong with a store; no failure of a database's own leaves this package."""

from cq.failures import CqError


class StoreError(CqError):
    """The store cannot do what was asked."""


class Duplicate(StoreError):
    """A unit of this id is there."""


class Missing(StoreError):
    """No unit of this id is there."""


class Closed(StoreError):
    """The store was closed."""


class Busy(StoreError):
    """Another process drains this store."""


class Unusable(StoreError):
    """The place of the store does not serve: it cannot be opened, read or written."""
