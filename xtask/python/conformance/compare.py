"""Compares answers of runners with the expected ones."""

PASSED, FAILED, UNSUPPORTED = "passed", "failed", "unsupported"


def canonical(answer):
    """Returns an answer by field, independent of the order of its rows."""
    fields = {}
    for name in ("axes", "levels"):
        if name in answer:
            fields[name] = answer[name]
    if "objects" in answer:
        fields["objects"] = sorted(answer["objects"])
        for name, values in answer.get("object", {}).items():
            fields[f"object.{name}"] = multiset(pairs(answer["objects"], values))
    if "groups" in answer:
        fields["groups"] = [sorted(members) for members in answer["groups"]]
        for name, values in answer.get("group", {}).items():
            fields[f"group.{name}"] = [frozen(value) for value in values]
    if "positions" not in answer:
        return fields
    positions = [frozen(position) for position in answer["positions"]]
    fields["positions"] = multiset(positions)
    for scope in ("vertex", "fragment"):
        for name, values in answer.get(scope, {}).items():
            fields[f"{scope}.{name}"] = multiset(pairs(positions, values))
    if "object_ids" in answer:
        fields["object_ids"] = multiset(pairs(positions, answer["object_ids"]))
    if "parts" in answer:
        parts = ((id, tuple(positions[first:end])) for id, first, end in answer["parts"])
        fields["parts"] = multiset(parts)
    if "links" in answer:
        if any(end < 0 for ends in answer["links"] for end in ends):
            raise IndexError("an end of a link is below 0")
        links = [tuple(positions[end] for end in ends) for ends in answer["links"]]
        fields["links"] = multiset(links)
        for name, values in answer.get("link", {}).items():
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


def compared(answer, wanted, may_be_incomplete=False):
    """Returns the outcome and the reason for each field of the answer that counts.

    A field expected to be empty counts only if the answer has values for it. If all are expected to
    be empty, the first counts.
    """
    wanted = canonical(wanted)
    counted = [name for name, value in wanted.items() if value] or list(wanted)[:1]
    if "unsupported" in answer:
        return {name: (UNSUPPORTED, str(answer["unsupported"])) for name in counted}
    error = answer.get("error")
    if answer.get("missing") and not may_be_incomplete:
        error = f"it misses {answer['missing']}"
    try:
        found = canonical(answer)
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as broken:
        error = error or f"the answer is broken: {broken!r}"
    if error is not None:
        return {name: (FAILED, f"error: {error}") for name in counted}
    outcomes = {}
    for name, value in wanted.items():
        if name not in counted and not found.get(name):
            continue
        if name not in found:
            outcomes[name] = (UNSUPPORTED, "not in the answer")
        elif found[name] == value:
            outcomes[name] = (PASSED, "")
        else:
            outcomes[name] = (FAILED, difference(found[name], value))
    return outcomes


def difference(found, wanted):
    if isinstance(found, dict) and isinstance(wanted, dict):
        extra = [one for one, count in found.items() if wanted.get(one) != count]
        lacking = [one for one, count in wanted.items() if found.get(one) != count]
        return (
            f"{sum(found.values())} found, {sum(wanted.values())} expected; "
            f"not expected {extra[:2]}, not found {lacking[:2]}"
        )[:600]
    return f"found {str(found)[:300]}, expected {str(wanted)[:300]}"
