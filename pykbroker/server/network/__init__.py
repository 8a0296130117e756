"""The network wing has listeners, connections and their transport, the dispatch of requests, and connections between
nodes. The modules, in reading order:

- `transport`: what is needed of the network, a seam.
- `socket_transport`: TCP behind that seam, with `sendfile`.
- `page_cache`: bytes that `sendfile` would have to wait for.
- `reached_address`: where a client has reached this node.
- `seeking_clients`: who asks where to go, and never comes.
- `listener`: accepts connections and looks after them.
- `connection_quotas`: how many connections there may be, and how fast they may come.
- `host_addresses`: addresses of hosts that are named in such limits.
- `sasl_gate`: nobody passes who has not authenticated.
- `connection`: one client connection.
- `receive_buffer`: frames out of borrowed buffers.
- `client_memory`: what connections hold together.
- `dispatch`: a frame goes in, the bytes of the answer come out.
- `throttling`: clients beyond their quotas; `request_meter`: what one request costs.
- `handlers`: the table of handlers, and what a handler is given.
- `large_requests`: requests of many entries wait for room.
- `node_connections`: connections to other nodes.
- `inter_broker`: requests to other brokers, by their ids.
"""
