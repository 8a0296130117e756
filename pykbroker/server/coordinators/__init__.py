"""The coordinators of groups and transactions stand here: their driver, their shards, transaction markers, producer
ids.
"""
