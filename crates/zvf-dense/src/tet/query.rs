//! Query documents of Tetration: reductions of a dataset, described by a flat JSON object.

mod document;
mod run;

use crate::{DenseError, reduce::Reduction};

/// Reasons why a query document is refused, or cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TetQueryError {
    /// The document is not JSON.
    #[error("the query is not a JSON object")]
    Json(#[source] serde_json::Error),
    /// The document is too long.
    #[error("the query has more than 1 MiB")]
    Long,
    /// A field that does not exist.
    #[error("unknown field `{field}`; the fields are {known}")]
    Unknown {
        /// The path of the field.
        field: String,
        /// The fields that exist there.
        known: &'static str,
    },
    /// A field with an invalid value.
    #[error("`{field}` {fault}")]
    Value {
        /// The path of the field.
        field: String,
        /// Fault of the field, or the form that it must have.
        fault: &'static str,
    },
    /// A word that is none of a field's words.
    #[error("unknown {what} `{word}`; use {known}")]
    Word {
        /// The kind of word.
        what: &'static str,
        /// The given word.
        word: String,
        /// The words that exist.
        known: &'static str,
    },
    /// An object around fields that belong to the document itself.
    #[error("nested `{0}` is not read; {1}")]
    Nested(&'static str, &'static str),
    /// A part of a query that has no meaning without a reduction.
    #[error("{0} requires a reduction, such as \"sum\": []; `zvf tet slice` returns values")]
    NoReduction(&'static str),
    /// Fields that exclude each other.
    #[error("`{0}` cannot be combined with {1}")]
    Combined(&'static str, &'static str),
    /// A name that is neither a number nor the name of an axis.
    #[error("invalid axis label `{0}`; give the number of an axis or its name in the file")]
    Axis(String),
    /// A dataset that the file does not have.
    #[error("the file has no dataset `{name}`; it has {present}")]
    Dataset {
        /// The requested name.
        name: String,
        /// Names of the datasets.
        present: String,
    },
    /// A label that an axis does not have.
    #[error("axis `{axis}` of dataset `{dataset}` has no label `{label}`")]
    Label {
        /// The dataset.
        dataset: String,
        /// The axis.
        axis: String,
        /// The requested label.
        label: String,
    },
    /// An axis without labels for all positions.
    #[error("axis `{axis}` of dataset `{dataset}` has no labels, or not one for each position")]
    Unlabelled {
        /// The dataset.
        dataset: String,
        /// The axis.
        axis: String,
    },
    /// The values cannot be read or reduced.
    #[error(transparent)]
    Read(#[from] DenseError),
}

/// A parsed query document: a flat JSON object.
///
/// | field | value |
/// |---|---|
/// | `dataset` | name |
/// | `selection` | for each axis `start`, `stop` and `step`, or labels as `start_label` and `stop_label` |
/// | `sum`, `mean`, `min`, `max`, `count`, `var`, `std`, `nan_count`, `nan_mean`, `nan_std` | the reduction, with its axes as numbers or names; `[]` for all axes |
/// | `filter` | conditions that values meet: `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `is_null`, `is_not_null` |
/// | `group_by` | axes whose positions are groups, or `{"by": "labels", "axes": […]}` to group equal labels |
/// | `window` | `axis`, `size`, `mode` (`bins` or `rolling`), `pad`, `step`, `align`, `min_count` |
/// | `align` | `with` and `axes`, instead of a reduction: compares extents, names and labels with another dataset |
///
/// All other fields are errors. Values are compared as 64-bit floats. A value is null if it is NaN or
/// equals the attribute `_FillValue`, `missing_value` or `fill_value`.
///
/// ```
/// use zvf_dense::tet::TetQuery;
///
/// assert!(TetQuery::parse(r#"{"dataset": "a", "sum": [], "filter": {"gt": 5}}"#).is_ok());
/// let refused = TetQuery::parse(r#"{"dataset": "a", "median": []}"#).unwrap_err();
/// assert!(refused.to_string().starts_with("unknown field `median`"));
/// ```
#[derive(Clone, Debug)]
pub struct TetQuery {
    dataset: String,
    selection: Option<Vec<AxisSlice>>,
    reduction: Option<NamedReduction>,
    filter: Vec<Condition>,
    groups: Option<GroupBy>,
    window: Option<WindowSpec>,
    align: Option<AlignSpec>,
}

#[derive(Clone, Debug, Default)]
struct AxisSlice {
    start: Option<Edge>,
    stop: Option<Edge>,
    step: Option<u64>,
}

#[derive(Clone, Debug)]
enum Edge {
    Position(u64),
    Label(String),
}

#[derive(Clone, Debug)]
struct NamedReduction {
    name: &'static str,
    reduction: Reduction,
    axes: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    Compare(Comparison, f64),
    Null(bool),
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug)]
struct GroupBy {
    by_labels: bool,
    axes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pad {
    None,
    Zero,
    Nan,
    Fill,
}

#[derive(Clone, Debug)]
struct WindowSpec {
    axis: String,
    size: u64,
    is_rolling: bool,
    pad: Pad,
    step: u64,
    at_end: bool,
    min_count: u64,
}

#[derive(Clone, Debug)]
struct AlignSpec {
    with: String,
    axes: Vec<String>,
}
