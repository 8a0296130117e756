"""What `pykbroker doctor` finds in brokers and clusters that something is wrong with, of either kind."""
