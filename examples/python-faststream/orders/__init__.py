"""Orders are priced, recorded in a ledger, or put aside with a reason."""
