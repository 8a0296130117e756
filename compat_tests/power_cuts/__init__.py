"""Power cuts on a real file system, under a broker process and stock clients: `volume`, `load`, `run`.

python -m compat_tests.power_cuts --cuts N [--seed S] [--file-system ext4|xfs]
"""
