"""Listeners, connections and their transport; the dispatch of requests; connections between nodes."""
