"""A node as a whole: its composition, its lifecycle, its registration with the controller."""
