"""The measurements as a Markdown page, with the speeds that are required."""

import os
from pathlib import Path

STEPS = {
    "write": "write", "open": "open", "whole": "whole",
    "floor": "reading and decoding all files, nothing else", "stream": "whole in pieces",
    "box 0.1": "box 0.1 %", "box 0.1, nothing kept": "box 0.1 %, no cache", "box 1": "box 1 %", "box 10": "box 10 %",
    "filter": "filter", "one": "one object", "one, nothing kept": "one object, no cache",
    "hundred": "100 objects", "hundred, nothing kept": "100 objects, no cache",
    "validate": "validate to L3", "pyramid": "two levels",
}


def text(name):
    return (Path(__file__).parent / "page" / f"{name}.md").read_text()


def figure(value, factor=1):
    """Formats a number with three significant digits."""
    if value is None:
        return ""
    value *= factor
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def row(cells):
    return f"| {' | '.join(map(str, cells))} |\n"


def targets(results):
    """Returns the required speeds of a set of measurements: what, value, bound, whether it is the least, and unit."""
    kind, steps, found = results["kind"], results["steps"], []

    def median(step, side):
        return steps.get(step, {}).get(side, {}).get("median")

    def ratio(what, step, other, ours, must):
        other, ours = median(step, other), median(step, ours)
        if other is not None and ours is not None:
            found.append((what, other / ours, must, True, "×"))

    if kind in ("points", "streamlines"):
        ratio("whole, uncompressed, against .npy", "whole", "npy", "zvf plain", 0.4)
    ratio("whole against Lance", "whole", "lance", "zvf plain", 1)
    ratio("whole against TRX", "whole", "trx", "zvf plain", 1)
    whole, floor = median("whole", "zvf auto"), median("floor", "zvf auto")
    if whole is not None and floor is not None:
        found.append(("whole, compressed, over reading and decoding", whole / floor, 1.3, False, "×"))
    peers = {"points": ("lance", "zvf plain"), "graph": ("parquet", "zvf auto"), "streamlines": ("trx", "zvf plain")}
    peer, form = peers.get(kind, ("precomputed", "zvf auto"))
    for share in ("0.1", "1", "10"):
        ratio(f"box {share} % against {peer}", f"box {share}", peer, form, 2)
        must = 8 if kind == "points" else 100
        ratio(f"box {share} % against zarr-vectors", f"box {share}", "zarr-vectors", "zvf auto", must)
    plain, compressed = {"streamlines": (0.05, 0.5), "skeletons": (0.15, 0.9)}.get(kind, (None, None))
    if plain:
        bounds = [("one", "zvf plain", plain), ("one", "zvf auto", compressed)]
        for step, side, most in [*bounds, ("hundred", "zvf plain", 1), ("hundred", "zvf auto", 20)]:
            if (seconds := median(step, side)) is not None:
                count = "one object" if step == "one" else "100 objects"
                found.append((f"{count}, {side}", seconds * 1e3, most, False, " ms"))
    if kind == "points":
        ratio("filter against Lance", "filter", "lance", "zvf plain", 2)
    ratio("write against zarr-vectors", "write", "zarr-vectors", "zvf auto", 8)
    ratio("levels against zarr-vectors", "pyramid", "zarr-vectors", "zvf auto", 10)
    ratio("validation against zarr-vectors", "validate", "zarr-vectors", "zvf auto", 50)
    raw, seconds = results["raw"], median("write", "zvf auto")
    if seconds is not None:
        each = raw / 1e6 / seconds / os.cpu_count()
        found.append(("write, compressed, per core", each, 100, True, " MB/s"))
    for step, what in (("write", "memory of writing, including the input, over raw"),
                       ("pyramid", "memory of levels, over raw")):
        peak = steps.get(step, {}).get("zvf auto", {}).get("peak")
        if peak is not None:
            found.append((what, peak / raw, 2, False, "×"))
    return found


def is_met(value, must, is_least):
    return value >= must if is_least else value <= must


def page(results):
    """Returns the whole page."""
    parts = [text("head"), machine(results), all_targets(results)]
    parts.append("\n## Times\n\nMedian in milliseconds, with minimum and maximum in brackets. ×: the time as a multiple "
                 "of the faster zvf form.\n")
    parts += [*map(times, results["sets"]), buckets(results["buckets"])]
    # Scaling is measured after the first sets.
    if results["scaling"]:
        parts.append(scaling(results["scaling"]))
    return "".join(parts)


def machine(results):
    of = results["machine"]
    return (f"\n## Machine\n\n{of['processor']}, {of['cores']} cores, {of['memory']}; {of['system']}; {of['rustc']}. "
            f"Load at the end: {of['load']}.\n\n{'; '.join(results['versions'])}.\n")


def all_targets(results):
    rows, met = [], 0
    for one in results["sets"]:
        for what, value, must, is_least, unit in targets(one):
            met += is_met(value, must, is_least)
            verdict = "met" if is_met(value, must, is_least) else "**not met**"
            bound = f"{'≥' if is_least else '≤'} {must:g}{unit}"
            rows.append(row([f"{one['kind']}, {one['vertices']}", what, bound, f"{figure(value)}{unit}", verdict]))
    head = "| geometry | measure | target | value | |\n|---|---|--:|--:|---|\n"
    return f"\n## Targets\n\n{met} of {len(rows)} targets are met.\n\n{head}{''.join(rows)}{text('limits')}"


def times(results):
    """Returns the table of a set."""
    objects = f", {results['objects']} objects" if results["objects"] else ""
    head = f"\n### {results['kind']}: {results['vertices']} vertices{objects}, {figure(results['raw'], 1e-6)} MB raw\n\n"
    steps = results["steps"]
    sides = sorted({side for step in steps.values() for side in step},
                   key=lambda side: (not side.startswith("zvf "), side != "npy", side))
    rows = [f"| | {' | '.join(sides)} |\n|---|{'--:|' * len(sides)}\n"]
    for step, name in STEPS.items():
        if step in steps:
            ours = [steps[step].get(side, {}).get("median") for side in ("zvf plain", "zvf auto")]
            ours = min((seconds for seconds in ours if seconds is not None), default=None)
            rows.append(row([name, *(time(steps[step].get(side, {}), side, ours) for side in sides)]))
    rows.append(row(["stored, MB", *(figure(results["sizes"].get(side), 1e-6) for side in sides)]))
    for step, name in (("write", "writing"), ("whole", "reading all"), ("pyramid", "levels")):
        peaks = (steps.get(step, {}).get(side, {}).get("peak") for side in sides)
        rows.append(row([f"memory of {name}, MB", *(figure(peak, 1e-6) for peak in peaks)]))
    return head + "".join(rows)


def time(figures, side, ours):
    if "error" in figures:
        return "failed"
    if "median" not in figures:
        return ""
    median, least, most = (figure(figures[name], 1e3) for name in ("median", "min", "max"))
    ratio = f" {figure(figures['median'] / ours)}×" if ours and not side.startswith("zvf ") else ""
    return f"{median} ({least}–{most}){ratio}"


def buckets(stores):
    head = "| store | form | query | requests | rounds | MB | result, MB | amplification | chunks | s |\n"
    rows, missed, bounds = [text("bucket"), head, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n"], [], []
    for store in stores:
        for form in store["forms"]:
            here = [f"{store['kind']}, {store['vertices']}", form["form"]]
            for query in form["queries"]:
                amplification = query["bytes"] / query["result"] if query["result"] else float("inf")
                rows.append(row([*here, query["query"], query["requests"], query["rounds"], figure(query["bytes"], 1e-6),
                                 figure(query["result"], 1e-6), figure(amplification), query["chunks"],
                                 figure(query["seconds"])]))
            for bound in form["bounds"]:
                bounds.append(bound)
                if not bound["met"]:
                    numbers = (figure(bound[name]) for name in ("most", "value", "floor"))
                    missed.append(row([*here, bound["query"], bound["what"], *numbers]))
    rows.append(f"\n{sum(bound['met'] for bound in bounds)} of {len(bounds)} bounds are met.\n")
    if missed:
        unreachable = sum((bound["floor"] or 0) > bound["most"] for bound in bounds)
        rows += [f"\n{text('floor_bucket')}\nOf these floors, {unreachable} are above their bound. With these chunks, at "
                 f"most {len(bounds) - unreachable} bounds can be met.\n\n",
                 "| store | form | query | measure | bound | value | floor |\n|---|---|---|---|--:|--:|--:|\n",
                 *missed, text("limits_bucket")]
    return "".join(rows)


def scaling(results):
    sizes = results["sizes"]
    rows = [text("scaling"), row(["geometry", "step", *sizes, "exponent"]), f"|---|---|{'--:|' * len(sizes)}--:|\n"]
    for kind, steps in sorted(results["kinds"].items()):
        for step, figures in sorted(steps.items()):
            seconds = (figure(one, 1e3) for one in figures["seconds"])
            rows.append(row([kind, step, *seconds, figure(figures["exponent"])]))
        peaks = (figure(peak, 1e-6) for peak in steps["stream"]["peaks"])
        rows.append(f"| {kind} | memory of a whole read in pieces, MB | {' | '.join(peaks)} | |\n")
    if results["cores"]:
        rows.append("\nOne core and all cores, milliseconds, compressed:\n\n| geometry | step | one | all | gain |\n"
                    "|---|---|--:|--:|--:|\n")
        for kind, steps in sorted(results["cores"].items()):
            for step, one in sorted(steps.items()):
                rows.append(row([kind, step, figure(one["one"], 1e3), figure(one["all"], 1e3), f"{figure(one['gain'])}×"]))
    return "".join(rows)
