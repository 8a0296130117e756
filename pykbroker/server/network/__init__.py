"""The network wing has listeners, connections and their transport, the dispatch of requests, and connections between
nodes.
"""
