"""Compares responses of runners with expected ones."""

PASSED, FAILED, UNSUPPORTED = "passed", "failed", "unsupported"


def canonical(response):
    """Returns a response by field, independent of the order of its rows."""
    fields = {}
    for name in ("axes", "levels"):
        if name in response:
            fields[name] = response[name]
    if "objects" in response:
        fields["objects"] = sorted(response["objects"])
        for name, values in response.get("object", {}).items():
            fields[f"object.{name}"] = multiset(pairs(response["objects"], values))
    if "groups" in response:
        fields["groups"] = [sorted(members) for members in response["groups"]]
        for name, values in response.get("group", {}).items():
            fields[f"group.{name}"] = [frozen(value) for value in values]
    if "positions" not in response:
        return fields
    positions = [frozen(position) for position in response["positions"]]
    fields["positions"] = multiset(positions)
    for scope in ("vertex", "fragment"):
        for name, values in response.get(scope, {}).items():
            fields[f"{scope}.{name}"] = multiset(pairs(positions, values))
    if "object_ids" in response:
        fields["object_ids"] = multiset(pairs(positions, response["object_ids"]))
    if "parts" in response:
        parts = ((id, tuple(positions[first:end])) for id, first, end in response["parts"])
        fields["parts"] = multiset(parts)
    if "links" in response:
        if any(end < 0 for ends in response["links"] for end in ends):
            raise IndexError("an end of a link is below 0")
        links = [tuple(positions[end] for end in ends) for ends in response["links"]]
        fields["links"] = multiset(links)
        for name, values in response.get("link", {}).items():
            fields[f"link.{name}"] = multiset(pairs(links, values))
    return fields


def frozen(value):
    """Returns a comparable and hashable value: lists become tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(item)) for key, item in value.items()))
    return value


def multiset(values):
    """Counts each value."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def pairs(of, values):
    if len(of) != len(values):
        raise ValueError(f"{len(values)} values of {len(of)} rows")
    return ((frozen(one), frozen(value)) for one, value in zip(of, values))


def compared(response, wanted, may_be_incomplete=False):
    """Returns the outcome and the reason for each field of the response that counts.

    A field expected to be empty counts only if the response has values for it. If all are expected to
    be empty, the first counts.
    """
    if "must" in wanted:
        return {"codes": validated(response, wanted)}
    wanted = canonical(wanted)
    counted = [name for name, value in wanted.items() if value] or list(wanted)[:1]
    if "unsupported" in response:
        return {name: (UNSUPPORTED, str(response["unsupported"])) for name in counted}
    error = response.get("error")
    if response.get("missing") and not may_be_incomplete:
        error = f"it misses {response['missing']}"
    try:
        found = canonical(response)
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as broken:
        error = error or f"the response is broken: {broken!r}"
    if error is not None:
        return {name: (FAILED, f"error: {error}") for name in counted}
    outcomes = {}
    for name, value in wanted.items():
        if name not in counted and not found.get(name):
            continue
        if name not in found:
            outcomes[name] = (UNSUPPORTED, "not in the response")
        elif found[name] == value:
            outcomes[name] = (PASSED, "")
        else:
            outcomes[name] = (FAILED, difference(found[name], value))
    return outcomes


def validated(response, wanted):
    """Compares the codes of damage that a validator finds with those that it must and must not find."""
    if "unsupported" in response:
        return UNSUPPORTED, str(response["unsupported"])
    codes = response.get("codes")
    if not isinstance(codes, list):
        return FAILED, f"no codes: {str(response)[:300]}"
    missed = [code for code in wanted["must"] if code not in codes]
    wrong = [code for code in wanted["must_not"] if code in codes]
    return (FAILED, f"missed {missed}, wrong {wrong}") if missed or wrong else (PASSED, "")


def difference(found, wanted):
    if isinstance(found, dict) and isinstance(wanted, dict):
        extra = [one for one, count in found.items() if wanted.get(one) != count]
        lacking = [one for one, count in wanted.items() if found.get(one) != count]
        return (
            f"{sum(found.values())} found, {sum(wanted.values())} expected; "
            f"not expected {extra[:2]}, not found {lacking[:2]}"
        )[:600]
    return f"found {str(found)[:300]}, expected {str(wanted)[:300]}"
