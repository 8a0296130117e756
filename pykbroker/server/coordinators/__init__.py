"""The coordinators of groups and transactions: their driver, their shards, transaction markers, producer ids."""
