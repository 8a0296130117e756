"""The rules of who a client is and what it may do, without sockets, files or Trio.

- `acls`: access control lists and the authorizer that decides by them.
"""
