"""Delegation tokens: credentials that a client has made for others, which speak for their owner (KIP-48).

- `delegation_token`: one token, and who may do what with it.
- `secret`: the key from which the HMAC of every token follows.
- `credentials`: SCRAM credentials of tokens, computed when somebody logs in with one.
"""
