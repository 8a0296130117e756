"""OAUTHBEARER on both brokers: which tokens are taken, and with which words others are refused."""
