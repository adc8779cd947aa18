"""What an agent's machine and the server share of cq: a knowledge unit's rules and its JSON."""
