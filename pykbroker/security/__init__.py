"""Rules of security that know no sockets: `tls`, the settings, stores, contexts and names of TLS."""
