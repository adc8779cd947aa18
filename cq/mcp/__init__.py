"""Five tools, two prompts and the skill for an agent's host, by the Model Context Protocol.

The same for `cq mcp` on a machine and for `/mcp` of a node. Knows no transport and no storage.
"""

from cq.mcp.server import make

__all__ = ["make"]
