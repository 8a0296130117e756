"""`python -m pykbroker` is the `pykbroker` command."""

from pykbroker.cli.main import main

main(prog_name="pykbroker")
