"""Security rules that know no sockets and no Trio: who a client is, and with which keys."""
