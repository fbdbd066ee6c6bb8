"""How many answers were given."""

from prometheus_client import Counter

from catalog.measures import REGISTRY

ANSWERS = Counter("berth_answers", "Answers to where a workload fits, by task.", ["task"], registry=REGISTRY)
