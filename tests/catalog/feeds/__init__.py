"""Bodies of feeds as tests need them: few rows, only the fields that matter."""

from pathlib import Path

HERE = Path(__file__).parent
VAST = (HERE / "vast_offers.json").read_bytes()
RUNPOD = (HERE / "runpod_types.json").read_bytes()
