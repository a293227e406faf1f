//! The measurements as a Markdown page.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::bars;

const HEAD: &str = include_str!("head.md");
const LIMITS: &str = include_str!("limits.md");

/// Writes the whole page.
pub(super) fn written(all: &Value) -> Result<String> {
    let mut page = HEAD.to_owned();
    machine(&mut page, all)?;
    all_bars(&mut page, all)?;
    page.push_str("\n## Times\n\nMedian in milliseconds, with minimum and maximum in brackets. ×: the time as a multiple of the faster zvf form.\n");
    for set in rows(&all["sets"]) {
        times(&mut page, set)?;
    }
    buckets(&mut page, all)?;
    // Scaling is measured after the first sets.
    if all["scaling"].is_object() {
        scaling(&mut page, all)?;
    }
    Ok(page)
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn machine(page: &mut String, all: &Value) -> Result<()> {
    let machine = &all["machine"];
    let text = |name: &str| machine[name].as_str().unwrap_or("unknown").to_owned();
    writeln!(page, "\n## Machine\n")?;
    writeln!(
        page,
        "{}, {} cores, {}; {}; {}. Load at the end: {}.",
        text("processor"),
        machine["cores"],
        text("memory"),
        text("system"),
        text("rustc"),
        text("load"),
    )?;
    let versions = rows(&all["versions"]).iter().filter_map(Value::as_str);
    writeln!(page, "\n{}.", versions.collect::<Vec<_>>().join("; "))?;
    Ok(())
}

fn all_bars(page: &mut String, all: &Value) -> Result<()> {
    let bars: Vec<_> = rows(&all["sets"]).iter().flat_map(bars::of).collect();
    let met = bars.iter().filter(|bar| bar.is_met()).count();
    writeln!(
        page,
        "\n## Targets\n\n{met} of {} targets are met.\n",
        bars.len()
    )?;
    writeln!(
        page,
        "| geometry | measure | target | value | |\n|---|---|--:|--:|---|"
    )?;
    for bar in bars {
        let verdict = if bar.is_met() { "met" } else { "**not met**" };
        let (set, what, is, unit) = (&bar.set, &bar.what, figure(bar.is), bar.unit);
        writeln!(
            page,
            "| {set} | {what} | {} | {is}{unit} | {verdict} |",
            bar.bound()
        )?;
    }
    page.push_str(LIMITS);
    Ok(())
}

/// Formats a number with three significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn times(page: &mut String, set: &Value) -> Result<()> {
    let kind = set["kind"].as_str().context("kind")?;
    let raw = set["raw"].as_f64().unwrap_or(0.0) / 1e6;
    let objects = match set["objects"].as_u64() {
        Some(0) | None => String::new(),
        Some(count) => format!(", {count} objects"),
    };
    writeln!(
        page,
        "\n### {kind}: {} vertices{objects}, {} MB raw\n",
        set["vertices"],
        figure(raw)
    )?;
    let steps = set["steps"].as_object().context("steps")?;
    let mut sides: Vec<&String> = Vec::new();
    for side in steps
        .values()
        .filter_map(Value::as_object)
        .flat_map(|step| step.keys())
    {
        if !sides.contains(&side) {
            sides.push(side);
        }
    }
    sides.sort_by_key(|side| {
        (
            !side.starts_with("zvf"),
            side.as_str() != "npy",
            side.as_str(),
        )
    });
    let names: Vec<&str> = sides.iter().map(|side| side.as_str()).collect();
    writeln!(page, "| | {} |", names.join(" | "))?;
    writeln!(page, "|---|{}", "--:|".repeat(sides.len()))?;
    for (step, name) in STEPS {
        let Some(figures) = steps.get(step) else {
            continue;
        };
        let ours = ["zvf plain", "zvf auto"].map(|side| figures[side]["median"].as_f64());
        let ours = ours.into_iter().flatten().reduce(f64::min);
        let cells = sides
            .iter()
            .map(|side| time(&figures[side.as_str()], side, ours));
        writeln!(
            page,
            "| {name} | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        )?;
    }
    let megabytes = |value: &Value| value.as_f64().map(|bytes| figure(bytes / 1e6));
    let sizes = sides
        .iter()
        .map(|side| megabytes(&set["sizes"][side.as_str()]).unwrap_or_default());
    writeln!(
        page,
        "| stored, MB | {} |",
        sizes.collect::<Vec<_>>().join(" | ")
    )?;
    for (step, name) in [
        ("write", "writing"),
        ("whole", "reading all"),
        ("pyramid", "levels"),
    ] {
        let peaks = sides
            .iter()
            .map(|side| megabytes(&steps.get(step).unwrap_or(&Value::Null)[side.as_str()]["peak"]));
        let peaks = peaks.map(Option::unwrap_or_default).collect::<Vec<_>>();
        writeln!(page, "| memory of {name}, MB | {} |", peaks.join(" | "))?;
    }
    Ok(())
}

const STEPS: [(&str, &str); 16] = [
    ("write", "write"),
    ("open", "open"),
    ("whole", "whole"),
    ("floor", "reading and decoding all files, nothing else"),
    ("stream", "whole in pieces"),
    ("box 0.1", "box 0.1 %"),
    ("box 0.1, nothing kept", "box 0.1 %, no cache"),
    ("box 1", "box 1 %"),
    ("box 10", "box 10 %"),
    ("filter", "filter"),
    ("one", "one object"),
    ("one, nothing kept", "one object, no cache"),
    ("hundred", "100 objects"),
    ("hundred, nothing kept", "100 objects, no cache"),
    ("validate", "validate to L3"),
    ("pyramid", "two levels"),
];

fn time(figures: &Value, side: &str, ours: Option<f64>) -> String {
    if figures["error"].is_string() {
        return "failed".to_owned();
    }
    let ms = |name: &str| figures[name].as_f64().map(|seconds| seconds * 1e3);
    let (Some(median), Some(least), Some(most)) = (ms("median"), ms("min"), ms("max")) else {
        return String::new();
    };
    let ratio = match ours {
        Some(ours) if !side.starts_with("zvf") => format!(" {}×", figure(median / 1e3 / ours)),
        _ => String::new(),
    };
    format!(
        "{} ({}–{}){ratio}",
        figure(median),
        figure(least),
        figure(most)
    )
}

fn buckets(page: &mut String, all: &Value) -> Result<()> {
    page.push_str(include_str!("bucket.md"));
    writeln!(
        page,
        "| store | form | query | requests | rounds | MB | result, MB | amplification | chunks | s |"
    )?;
    writeln!(page, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|")?;
    let mut missed = String::new();
    for store in rows(&all["buckets"]) {
        let name = format!(
            "{}, {}",
            store["kind"].as_str().unwrap_or_default(),
            store["vertices"]
        );
        for form in rows(&store["forms"]) {
            let shown = form["form"].as_str().unwrap_or_default();
            for query in rows(&form["queries"]) {
                let number = |name: &str| query[name].as_f64().unwrap_or(f64::NAN);
                writeln!(
                    page,
                    "| {name} | {shown} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    query["query"].as_str().unwrap_or_default(),
                    query["requests"],
                    query["rounds"],
                    figure(number("bytes") / 1e6),
                    figure(number("result") / 1e6),
                    figure(number("bytes") / number("result")),
                    query["chunks"],
                    figure(number("seconds")),
                )?;
            }
            for bound in rows(&form["bounds"])
                .iter()
                .filter(|bound| bound["met"] == false)
            {
                let number = |name: &str| figure(bound[name].as_f64().unwrap_or(f64::NAN));
                let text = |name: &str| bound[name].as_str().unwrap_or_default();
                let (value, most, floor) = (number("value"), number("most"), number("floor"));
                let (query, what) = (text("query"), text("what"));
                writeln!(
                    missed,
                    "| {name} | {shown} | {query} | {what} | {most} | {value} | {floor} |"
                )?;
            }
        }
    }
    let bounds = rows(&all["buckets"])
        .iter()
        .flat_map(|store| rows(&store["forms"]));
    let bounds = bounds.flat_map(|form| rows(&form["bounds"]));
    let (mut met, mut unreachable, mut count) = (0, 0, 0);
    for bound in bounds {
        count += 1;
        met += usize::from(bound["met"] == true);
        unreachable += usize::from(bound["floor"].as_f64() > bound["most"].as_f64());
    }
    writeln!(page, "\n{met} of {count} bounds are met.")?;
    if !missed.is_empty() {
        write!(page, "\n{}", include_str!("floor_bucket.md"))?;
        writeln!(
            page,
            "\nOf these floors, {unreachable} are above their bound. With these chunks, at most {} bounds can be met.\n",
            count - unreachable
        )?;
        writeln!(
            page,
            "| store | form | query | measure | bound | value | floor |"
        )?;
        write!(page, "|---|---|---|---|--:|--:|--:|\n{missed}")?;
        page.push_str(include_str!("limits_bucket.md"));
    }
    Ok(())
}

fn scaling(page: &mut String, all: &Value) -> Result<()> {
    page.push_str(include_str!("scaling.md"));
    let scaling = &all["scaling"];
    let sizes = rows(&scaling["sizes"]).iter().map(ToString::to_string);
    let sizes = sizes.collect::<Vec<_>>().join(" | ");
    writeln!(page, "| geometry | step | {sizes} | exponent |")?;
    writeln!(
        page,
        "|---|---|{}--:|",
        "--:|".repeat(rows(&scaling["sizes"]).len())
    )?;
    let kinds = scaling["kinds"].as_object().context("kinds")?;
    for (kind, steps) in kinds {
        for (step, figures) in steps.as_object().context("steps")? {
            let seconds = rows(&figures["seconds"]).iter().map(milliseconds);
            let seconds = seconds.collect::<Vec<_>>().join(" | ");
            let exponent = figures["exponent"].as_f64().map(figure).unwrap_or_default();
            writeln!(page, "| {kind} | {step} | {seconds} | {exponent} |")?;
        }
        let peaks = rows(&steps["stream"]["peaks"]).iter();
        let peaks = peaks.map(|peak| figure(peak.as_f64().unwrap_or(f64::NAN) / 1e6));
        let peaks = peaks.collect::<Vec<_>>().join(" | ");
        writeln!(
            page,
            "| {kind} | memory of a whole read in pieces, MB | {peaks} | |"
        )?;
    }
    let Some(cores) = scaling["cores"].as_object() else {
        return Ok(());
    };
    writeln!(
        page,
        "\nOne core and all cores, milliseconds, compressed:\n"
    )?;
    writeln!(
        page,
        "| geometry | step | one | all | gain |\n|---|---|--:|--:|--:|"
    )?;
    for (kind, steps) in cores {
        for (step, figures) in steps.as_object().context("steps")? {
            let (one, both) = (milliseconds(&figures["one"]), milliseconds(&figures["all"]));
            let gain = figures["gain"].as_f64().map(figure).unwrap_or_default();
            writeln!(page, "| {kind} | {step} | {one} | {both} | {gain}× |")?;
        }
    }
    Ok(())
}

fn milliseconds(seconds: &Value) -> String {
    let seconds = seconds.as_f64();
    seconds
        .map(|seconds| figure(seconds * 1e3))
        .unwrap_or_default()
}
