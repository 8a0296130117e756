"""Bugs that are planted in the source of the product, to see whether the project's tests notice them.

- `bugs/*.md`: the list, a file for each package; `planted_bugs` reads it;
- `sample`: bugs that nobody chose, drawn from all that cosmic-ray can make of a package's source;
- `tree`: the copy of the tree in which a bug is planted; `trial`: the tests that are asked there;
- `score`: what was found, as a table.
"""
