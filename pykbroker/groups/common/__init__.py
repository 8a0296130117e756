"""Parts that all groups share: their interface, records, deadlines, settings, steps, and the view of topics."""
