//! Samples of one file.

use std::collections::HashMap;

use crate::{FileFault, values::is_float32};

/// Name of the column of radii in errors.
const RADIUS: &str = "the radius";

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) id: i32,
    pub(super) kind: i32,
    /// x, y, z and the radius.
    pub(super) numbers: [f64; 4],
    pub(super) parent: i32,
    /// Line, counted from 1.
    pub(super) line: u64,
}

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct SwcFile {
    pub(super) samples: Vec<Sample>,
    /// Comments and blank lines with their lines.
    pub(super) comments: Vec<(u64, String)>,
    /// True if a number is not the shortest text of a float32.
    pub(super) needs_float64: bool,
    /// True if a line has more than seven columns.
    pub(super) has_more_columns: bool,
    /// True if the last line has no line end.
    pub(super) is_cut: bool,
}

/// A fault and its line.
pub(super) type LineFault = (u64, FileFault);

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<SwcFile, LineFault> {
    let mut file = SwcFile {
        is_cut: !text.ends_with('\n'),
        ..SwcFile::default()
    };
    for (line, text) in (1_u64..).zip(text.lines()) {
        let content = text.trim_start_matches('\u{feff}').trim();
        if content.is_empty() || content.starts_with('#') {
            file.comments.push((line, text.to_owned()));
            continue;
        }
        let (content, comment) = content.split_once('#').unwrap_or((content, ""));
        file.has_more_columns |= !comment.is_empty();
        let mut fields = content.split_ascii_whitespace();
        let mut next = |what| fields.next().ok_or((line, missing(what)));
        let id = integer(next("the id")?, "the id").map_err(|fault| (line, fault))?;
        let kind = integer(next("the type")?, "the type").map_err(|fault| (line, fault))?;
        let mut numbers = [0.0; 4];
        for (number, what) in numbers.iter_mut().zip(["x", "y", "z", RADIUS]) {
            let text = next(what)?;
            *number = coordinate(text, what).map_err(|fault| (line, fault))?;
            file.needs_float64 = file.needs_float64 || !is_float32(text, *number);
        }
        let parent = next("the parent")?;
        let parent = integer(parent, "the parent").map_err(|fault| (line, fault))?;
        file.has_more_columns |= fields.next().is_some();
        if id < 0 {
            return Err((line, FileFault::field("an id", id, "ids are not negative")));
        }
        file.samples.push(Sample {
            id,
            kind,
            numbers,
            parent,
            line,
        });
    }
    Ok(file)
}

fn missing(what: &'static str) -> FileFault {
    FileFault::field(
        what,
        "absent",
        "a sample has 7 columns; the file is cut off or another format",
    )
}

fn shortened(text: &str) -> String {
    text.chars().take(24).collect()
}

fn integer(text: &str, what: &'static str) -> Result<i32, FileFault> {
    let found: Option<i32> = text.parse().ok();
    // Some programs write ids as 1.0.
    let whole = || text.strip_suffix(".0").and_then(|text| text.parse().ok());
    found.or_else(whole).ok_or_else(|| FileFault::Number {
        what,
        text: shortened(text),
    })
}

fn coordinate(text: &str, what: &'static str) -> Result<f64, FileFault> {
    let number: f64 = text.parse().map_err(|_| FileFault::Number {
        what,
        text: shortened(text),
    })?;
    match what {
        _ if number.is_finite() => Ok(number),
        RADIUS => {
            let expected = "it is a finite number; write 0 if it is unknown";
            Err(FileFault::field(what, number, expected))
        }
        _ => Err(FileFault::NotFinite(number)),
    }
}

impl SwcFile {
    /// Returns the row of each parent.
    ///
    /// # Errors
    ///
    /// A fault for ids that repeat, parents that are not there, and circles.
    pub(super) fn parents(&self) -> Result<Vec<Option<usize>>, LineFault> {
        let rows = SampleRows::of(&self.samples)?;
        let parent = |sample: &Sample| {
            if sample.parent == -1 {
                return Ok(None);
            }
            let row = rows.get(&self.samples, sample.parent);
            row.map(Some).ok_or_else(|| {
                let expected = "no sample has this id; a root has the parent -1";
                (
                    sample.line,
                    FileFault::field("the parent", sample.parent, expected),
                )
            })
        };
        let parents: Vec<Option<usize>> =
            self.samples.iter().map(parent).collect::<Result<_, _>>()?;
        match circle(&parents).and_then(|row| self.samples.get(row)) {
            None => Ok(parents),
            Some(sample) => {
                let expected = "the sample is its own ancestor; repair its parent";
                Err((
                    sample.line,
                    FileFault::field("the parent", sample.parent, expected),
                ))
            }
        }
    }
}

/// Rows by the ids of samples.
enum SampleRows {
    /// The ids ascend, as in most files.
    Ascending,
    Any(HashMap<i32, usize>),
}

impl SampleRows {
    fn of(samples: &[Sample]) -> Result<Self, LineFault> {
        if samples.is_sorted_by(|one, two| one.id < two.id) {
            return Ok(Self::Ascending);
        }
        let mut rows = HashMap::with_capacity(samples.len());
        for (row, sample) in samples.iter().enumerate() {
            if rows.insert(sample.id, row).is_some() {
                let fault = FileFault::Twice(format!("the id {}", sample.id));
                return Err((sample.line, fault));
            }
        }
        Ok(Self::Any(rows))
    }

    fn get(&self, samples: &[Sample], id: i32) -> Option<usize> {
        match self {
            Self::Ascending => samples.binary_search_by_key(&id, |sample| sample.id).ok(),
            Self::Any(rows) => rows.get(&id).copied(),
        }
    }
}

/// Returns a row of a circle.
pub(super) fn circle(parents: &[Option<usize>]) -> Option<usize> {
    // 0 is not visited, otherwise the number of the walk that reached the row.
    let mut visited = vec![0_usize; parents.len()];
    for start in 0..parents.len() {
        let walk = start.saturating_add(1);
        let mut at = Some(start);
        while let Some(row) = at {
            let mark = visited.get_mut(row)?;
            if *mark == walk {
                return Some(row);
            }
            if *mark != 0 {
                break;
            }
            *mark = walk;
            at = parents.get(row).copied().flatten();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found() {
        assert_eq!(circle(&[None, Some(0), Some(1), Some(0)]), None);
        assert_eq!(circle(&[Some(0)]), Some(0));
        assert!(circle(&[None, Some(3), Some(1), Some(2)]).is_some());
    }
}
