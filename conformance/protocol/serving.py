"""Common parts of runners for Python packages: the loop, and numbers in the notation of the
protocol.
"""

import json
import os
import sys
import warnings

import numpy as np


class Unsupported(Exception):
    """The package does not support the request."""


def serve(response):
    """Responds to each line of standard input with `response`."""
    warnings.simplefilter("ignore")
    # Output that packages print must not mix with responses.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            found = response(request["store"], request["level"], request["query"])
        except (Unsupported, NotImplementedError) as reason:
            found = {"unsupported": str(reason) or type(reason).__name__}
        except Exception as error:  # noqa: BLE001, a failure to read is a response too
            found = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(found) + "\n")
        out.flush()


def told(values):
    """Returns the rows of an array."""
    return [value(one) for one in np.asarray(values).tolist()]


def value(one):
    if isinstance(one, list):
        return value(one[0]) if len(one) == 1 else [value(part) for part in one]
    if isinstance(one, float) and not np.isfinite(one):
        return {"float": str(one)}
    if isinstance(one, bytes):
        return one.decode()
    return one


def rows(positions):
    return [list(map(value, row)) for row in np.asarray(positions).tolist()]


def of_paths(paths, names, box):
    """Returns a response of paths: id, positions, columns; with a box, paths entirely inside."""
    response = {"positions": [], "parts": [], "vertex": {name: [] for name in names}}
    for id, positions, columns in paths:
        positions = np.asarray(positions)
        if len(positions) == 0 or (box is not None and not inside(positions, box).all()):
            continue
        first = len(response["positions"])
        response["positions"] += rows(positions)
        response["parts"].append([int(id), first, first + len(positions)])
        for name in names:
            response["vertex"][name] += told(columns[name])
    return response


def inside(positions, box):
    lower, upper = (np.asarray(corner, np.float64) for corner in box)
    return ((positions >= lower) & (positions <= upper)).all(axis=1)


def box_of(query):
    return (query["lower"], query["upper"]) if query["kind"] == "bbox" else None


def tables(low, level, ids, object_names, group_names):
    """Returns objects and groups with their attributes, read by the package's array readers."""
    response = {}
    if ids is not None:
        response |= {"objects": [int(one) for one in ids], "object": {}}
        for name in object_names:
            found = told(low.read_object_attributes(level, name))
            mask = low.read_object_attribute_present_mask(level, name)
            if mask is not None:
                found = [one if there else None for one, there in zip(found, mask)]
            response["object"][name] = found
    try:
        groups = low.read_all_groupings(level)
    except Exception:  # noqa: BLE001, there are none
        return response
    response["groups"] = [[int(one) for one in members] for members in groups]
    response["group"] = {name: told(low.read_groupings_attributes(level, name)) for name in group_names}
    return response
