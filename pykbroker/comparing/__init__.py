"""One client script on two brokers, and what the brokers did differently: `pykbroker diff`.

- `recording`: what was answered in one run. `recording_proxy` stands between the script and a broker, and records.
- `normal_form`: answers without what is drawn, measured or placed. `placeholders` stand for it.
- `answers` compares two recordings, `field_differences` two values in normal form.
- `final_state`: the records of topics and the offsets of groups that a run left behind.
- `script`: the run of a script, and the brokers that are started for it.
"""
