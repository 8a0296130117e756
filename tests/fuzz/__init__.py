"""A search for inputs that break what reads bytes of others: by exceptions that nobody declared, or by what they cost.

`make fuzz MINUTES=n` searches with Atheris, which is led by the lines that an input reaches. `corpus/` keeps the inputs
that reach something of their own; `test_corpus.py` runs them, without Atheris, in every test run. What the search finds
is mended where it comes from, and becomes a test with a name beside the code.

- `targets` what is called with an input, and what may come out of it; `states` those that load a state machine and ask
  it; `seeds` honest inputs of each; `inputs` the forms that they share
- `costs`, `judge` what an input may cost, and how that is measured
- `corpus` the kept inputs; `search` one target's search, a process of its own; `__main__` all of them
- `live` requests to a running broker, made from the schemas and bent (`test_live.py`, which changes stories, too)
"""
