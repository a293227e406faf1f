//! The measurements of reads as a Markdown table.

use std::fmt;

use serde_json::Value;

pub(super) const LEGEND: &str = "\
Requests are those for objects and parts of them, whether they are there or not, and listings. Seconds are medians of
three, each from opening the store, its files in the cache of the system; ours start a program as well. The reference's
requests are counted through a Zarr store, its seconds are those of its way past Zarr to local files.";

/// Writes the rows.
pub(super) struct Table<'a>(pub(super) &'a [Value]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADING)?;
        let mut store = &Value::Null;
        for record in self.0 {
            // Only the first row of a store names it.
            let first = &record["store"] != store;
            store = &record["store"];
            let name = if first { text(store) } else { "" };
            row(f, name, record)?;
        }
        Ok(())
    }
}

const HEADING: &str = "\
| store | query | vertices | requests: reference | ours | MB: reference | ours | seconds: reference | ours | \
fewer requests | fewer bytes | faster | remarks |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
";

fn row(f: &mut fmt::Formatter<'_>, store: &str, record: &Value) -> fmt::Result {
    let (reference, ours) = (&record["reference"], &record["ours"]);
    let right = &record["found"]["vertices"];
    let vertices = right.as_u64().or(ours["found"]["vertices"].as_u64());
    write!(
        f,
        "| {store} | {} | {} ",
        text(&record["query"]),
        count(vertices)
    )?;
    for shown in [
        |side: &Value| count(requests(side)),
        |side: &Value| megabytes(&side["bytes"]),
        |side: &Value| seconds(&side["seconds"]),
    ] {
        write!(f, "| {} | {} ", shown(reference), shown(ours))?;
    }
    let ratios = [
        ratio(&requests(reference).into(), &requests(ours).into()),
        ratio(&reference["bytes"], &ours["bytes"]),
        ratio(&reference["seconds"], &ours["seconds"]),
    ];
    for ratio in ratios {
        write!(f, "| {ratio} ")?;
    }
    writeln!(f, "| {} |", remarks(record).join("; "))
}

/// Notes on the method of the reference, and on results that differ.
fn remarks(record: &Value) -> Vec<String> {
    let reference = &record["reference"];
    let mut remarks = Vec::new();
    if let Some(note) = reference["note"].as_str() {
        remarks.push(note.to_owned());
    }
    let (found, right) = (
        &reference["found"]["vertices"],
        &record["found"]["vertices"],
    );
    if found.is_u64() && right.is_u64() && found != right {
        remarks.push(format!("the reference finds {}", count(found.as_u64())));
    }
    let warnings = reference["warnings"].as_array();
    if warnings.is_some_and(|warnings| !warnings.is_empty()) {
        remarks.push("the reference warns".to_owned());
    }
    if let Some(error) = record["ours"]["error"].as_str() {
        remarks.push(format!("ours fails: {}", error.replace('|', "\\|")));
    }
    remarks
}

/// Formats requests and listings; those of zvf are counted together.
fn requests(side: &Value) -> Option<u64> {
    let lists = side["lists"].as_u64().unwrap_or(0);
    Some(side["requests"].as_u64()?.saturating_add(lists))
}

const NONE: &str = "–";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or(NONE)
}

/// Formats a number with thousands separators.
fn count(number: Option<u64>) -> String {
    let Some(number) = number else {
        return NONE.to_owned();
    };
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn megabytes(bytes: &Value) -> String {
    let bytes = bytes.as_f64();
    bytes.map_or(NONE.to_owned(), |bytes| format!("{:.3}", bytes / 1e6))
}

fn seconds(seconds: &Value) -> String {
    let seconds = seconds.as_f64();
    seconds.map_or(NONE.to_owned(), |seconds| format!("{seconds:.3}"))
}

/// Formats the value of the reference as a multiple of ours.
fn ratio(reference: &Value, ours: &Value) -> String {
    match (reference.as_f64(), ours.as_f64()) {
        (Some(reference), Some(ours)) if ours > 0.0 => format!("{:.1}×", reference / ours),
        _ => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Value {
        json!({
            "store": "mesh", "query": "whole level", "found": {"vertices": 1_000_000},
            "reference": {
                "requests": 1195, "lists": 5, "bytes": 4_000_000, "seconds": 2.0,
                "found": {"vertices": 999_000}, "note": "slow", "warnings": [],
            },
            "ours": {"requests": 400, "bytes": 1_000_000, "seconds": 0.5},
        })
    }

    #[test]
    fn shows_both_sides_and_their_ratios() {
        let records = [record(), record()];
        let text = Table(&records).to_string();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        let rest = "whole level | 1,000,000 | 1,200 | 400 | 4.000 | 1.000 | 2.000 | 0.500 \
            | 3.0× | 4.0× | 4.0× | slow; the reference finds 999,000 |";
        assert_eq!(rows, [format!("| mesh | {rest}"), format!("|  | {rest}")]);
    }

    #[test]
    fn leaves_out_what_was_not_measured() {
        let mut record = record();
        record["reference"] = json!({});
        record["ours"] = json!({ "error": "no such column" });
        let text = Table(&[record]).to_string();
        assert!(text.contains("| 1,000,000 | – | – | – | – | – | – | – | – | – | ours fails"));
    }

    #[test]
    fn every_row_has_the_columns_of_the_heading() {
        let text = Table(&[record()]).to_string();
        let mut columns = text.lines().map(|line| line.matches('|').count());
        let first = columns.next();
        assert!(columns.all(|count| Some(count) == first));
    }
}
