"""TLS as stock clients see it, on both brokers: who is served, who is refused and with which error, and how stores are
replaced while a broker runs.
"""
