"""Who is let in, what each may do, and with which words others are refused: on both brokers, from bytes and from stock
clients.
"""
