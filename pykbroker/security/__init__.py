"""Who somebody is and what he may do: rules without sockets, files or Trio.

- `acls`: access control lists and the authorizer that decides by them.
"""
