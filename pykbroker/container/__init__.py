"""A node from environment variables, as the images `apache/kafka` and `bitnami/kafka` take them.

- `names`: which variable is which key, and which variables are no key.
- `texts`: the text of a variable as the value of a property, and variables that name a file.
- `environment` reads all variables, and makes a `node_environment` of them; `apache`, `bitnami` and `bitnami_listeners`
  read what only one of the images knows.
- `log_levels`: the levels of the log, in log4j's words.
- `places`: the mounted files and volumes at which the images' users have them.
- `directories`: data directories that this process can use, formatted for the cluster.
- `health`: the program of the container's health check. `tools`: the names of Kafka's tools.

Not here: the image itself, which is in `docker/`, and what a key allows (`pykbroker.config`).
"""
