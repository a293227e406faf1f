"""`zvf validate` as a runner: runner_validate.py ZVF."""

import json
import subprocess
import sys

for request in map(json.loads, sys.stdin):
    if request["query"]["kind"] == "scope":
        reply = {"scope": {"query": ["validate"]}}
    else:
        done = subprocess.run([sys.argv[1], "validate", request["store"], "--json"], capture_output=True, text=True)
        reply = {"codes": sorted({one["code"] for one in json.loads(done.stdout)["findings"]})}
    print(json.dumps(reply), flush=True)
