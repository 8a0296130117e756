"""Of what a node consists: the one place where its parts are made and wired."""
