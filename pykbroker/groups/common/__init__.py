"""What all groups share: the interface of a group, records, deadlines, settings, steps, and the view of topics."""
