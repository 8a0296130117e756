"""`pykbroker start --secure DIR`: a broker with TLS, users and rights, from nothing.

- `authority`: a certificate authority of its own, and the certificate of the broker.
- `stores`: both as files, in each format that clients read.
- `users`: names and passwords.
- `directory`: all of it in one directory, with the properties of the broker.
- `rights`: users and their ACLs in the metadata of the broker that serves.
- `client_files`: one ready configuration for each kind of client.
"""
