//! Running of query documents.

use core::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{
    super::{DatasetInfo, TetDtype, TetFile},
    AlignSpec, AxisSlice, Comparison, Condition, Edge, NamedReduction, Pad, TetQuery,
    TetQueryError as Error, WindowSpec,
};
use crate::{
    ArrayView, Hyperslab,
    hyperslab::AxisRange,
    reduce::{AxisSlots, Scalar, SlotOptions, SlotResults, Windows, reduce, reduce_slots},
};

/// Attributes that give the value of missing elements.
const FILL_ATTRIBUTES: [&str; 3] = ["_FillValue", "missing_value", "fill_value"];

fn value(field: &str, fault: &'static str) -> Error {
    let field = field.to_owned();
    Error::Value { field, fault }
}

fn is_float(info: &DatasetInfo) -> bool {
    matches!(info.dtype(), TetDtype::F16 | TetDtype::F32 | TetDtype::F64)
}

/// A dataset of the file of a query.
#[derive(Clone, Copy)]
struct Subject<'a> {
    file: &'a TetFile,
    info: &'a DatasetInfo,
}

impl<'a> Subject<'a> {
    fn find(file: &'a TetFile, name: &str) -> Result<Self, Error> {
        let found = file.datasets().iter().find(|info| info.name() == name);
        let info = found.ok_or_else(|| {
            let names: Vec<&str> = file
                .datasets()
                .iter()
                .take(8)
                .map(DatasetInfo::name)
                .collect();
            Error::Dataset {
                name: name.to_owned(),
                present: match names.as_slice() {
                    [] => "none".to_owned(),
                    names => names.join(", "),
                },
            }
        })?;
        Ok(Self { file, info })
    }

    fn rank(self) -> usize {
        self.info.grid().shape().len()
    }

    /// Returns the number of an axis.
    fn axis(self, label: &str) -> Result<usize, Error> {
        let names = self.info.dimension_names().unwrap_or_default();
        let named = names.iter().position(|name| name == label);
        let numbered = label.parse().ok().filter(|axis| *axis < self.rank());
        named
            .or(numbered)
            .ok_or_else(|| Error::Axis(label.to_owned()))
    }

    fn axes(self, labels: &[String]) -> Result<Vec<usize>, Error> {
        let axes: Vec<usize> = labels
            .iter()
            .map(|label| self.axis(label))
            .collect::<Result<_, _>>()?;
        for (at, axis) in axes.iter().enumerate() {
            if axes.iter().take(at).any(|other| other == axis) {
                return Err(Error::Axis(axis.to_string()));
            }
        }
        Ok(axes)
    }

    fn name_of(self, axis: usize) -> Option<&'a str> {
        let names = self.info.dimension_names()?;
        names.get(axis).map(String::as_str)
    }

    /// Returns the labels of the positions along an axis: under its name, or under its number.
    fn labels(self, axis: usize) -> Option<Vec<&'a str>> {
        let coordinates = self.file.footer()?.of_dataset(self.info.name(), "coords")?;
        let named = self.name_of(axis).and_then(|name| coordinates.get(name));
        let of_axis = named.or_else(|| coordinates.get(axis.to_string()))?;
        let labels = of_axis.get("labels")?.as_array()?;
        let extent = self.info.grid().shape().get(axis)?;
        let is_whole = u64::try_from(labels.len()) == Ok(*extent);
        is_whole.then(|| labels.iter().map(Value::as_str).collect())?
    }

    fn needed_labels(self, axis: usize) -> Result<Vec<&'a str>, Error> {
        self.labels(axis).ok_or_else(|| Error::Unlabelled {
            dataset: self.info.name().to_owned(),
            axis: self
                .name_of(axis)
                .map_or_else(|| axis.to_string(), str::to_owned),
        })
    }

    fn edge(self, axis: usize, edge: Option<&Edge>, default: u64) -> Result<u64, Error> {
        let label = match edge {
            None => return Ok(default),
            Some(Edge::Position(at)) => return Ok(*at),
            Some(Edge::Label(label)) => label,
        };
        let labels = self.needed_labels(axis)?;
        let at = labels
            .iter()
            .position(|known| known == label)
            .and_then(|at| u64::try_from(at).ok());
        at.ok_or_else(|| Error::Label {
            dataset: self.info.name().to_owned(),
            axis: axis.to_string(),
            label: label.clone(),
        })
    }

    fn selection(self, slices: Option<&[AxisSlice]>) -> Result<Hyperslab, Error> {
        let shape = self.info.grid().shape();
        let Some(slices) = slices else {
            return Ok(Hyperslab::whole(shape));
        };
        if slices.len() != shape.len() {
            return Err(value("selection", "must have an object for each axis"));
        }
        let ranges = slices
            .iter()
            .zip(shape)
            .enumerate()
            .map(|(axis, (slice, extent))| {
                let start = self.edge(axis, slice.start.as_ref(), 0)?;
                let stop = self.edge(axis, slice.stop.as_ref(), *extent)?;
                if start >= stop {
                    return Err(value(
                        "selection",
                        "must begin before it stops along each axis",
                    ));
                }
                let range = AxisRange::new(start, stop, slice.step.unwrap_or(1));
                range.map_err(|error| Error::Read(error.into()))
            });
        ranges.collect()
    }

    /// Returns the value of missing elements, if an attribute gives one.
    fn fill(self) -> Option<Scalar> {
        let attributes = self.info.attributes();
        let given = FILL_ATTRIBUTES
            .iter()
            .find_map(|name| attributes.get(*name))?;
        let text = given
            .as_str()
            .map_or_else(|| given.to_string(), str::to_owned);
        let has_floats = is_float(self.info);
        let whole = text.trim().parse().ok().filter(|_| !has_floats);
        whole
            .map(Scalar::Int)
            .or_else(|| text.trim().parse().ok().map(Scalar::Float))
    }
}

impl Condition {
    fn keeps(self, number: f64, is_null: bool) -> bool {
        let (comparison, other) = match self {
            Self::Null(wanted) => return is_null == wanted,
            Self::Compare(comparison, other) => (comparison, other),
        };
        let order = number.partial_cmp(&other).filter(|_| !is_null);
        match comparison {
            Comparison::Eq => order == Some(Ordering::Equal),
            Comparison::Ne => order != Some(Ordering::Equal),
            Comparison::Lt => order == Some(Ordering::Less),
            Comparison::Le => order.is_some_and(Ordering::is_le),
            Comparison::Gt => order == Some(Ordering::Greater),
            Comparison::Ge => order.is_some_and(Ordering::is_ge),
        }
    }
}

fn windows(spec: &WindowSpec, extent: u64) -> Result<Windows, Error> {
    let size = spec.size;
    if size > extent {
        return Err(value("window.size", "exceeds the axis"));
    }
    let (step, before, last) = match (spec.is_rolling, spec.pad, spec.at_end) {
        (false, _, false) => (size, 0, extent.saturating_sub(1)),
        (false, _, true) => {
            let before = extent.next_multiple_of(size).saturating_sub(extent);
            (
                size,
                before,
                extent.saturating_add(before).saturating_sub(1),
            )
        }
        (true, Pad::None, _) => (spec.step, 0, extent.saturating_sub(size)),
        (true, _, false) => (spec.step, size.saturating_sub(1), extent.saturating_sub(1)),
        (true, _, true) => (spec.step, 0, extent.saturating_sub(1)),
    };
    Ok(Windows {
        extent,
        size,
        step,
        before,
        count: (last / step.max(1)).saturating_add(1),
    })
}

impl TetQuery {
    /// Runs the query, and returns the response: `dataset`, and `execution` with the results under the
    /// names of the reference implementation, such as `operation_sum` for one result and
    /// `operation_reduced_sum` for several. JSON has no NaN; it is `null`.
    ///
    /// # Errors
    ///
    /// [`TetQueryError`](super::TetQueryError) if the file lacks a dataset, an axis or labels, or the
    /// values cannot be read within the budget.
    pub fn run(&self, file: &TetFile) -> Result<Value, Error> {
        let subject = Subject::find(file, &self.dataset)?;
        let execution = match (&self.align, &self.reduction) {
            (Some(align), _) => json!({ "alignment": alignment(subject, align)? }),
            (None, Some(reduction)) => self.reduced(subject, reduction)?,
            (None, None) => return Err(Error::NoReduction("a query")),
        };
        Ok(json!({ "dataset": self.dataset, "status": "ok", "execution": execution }))
    }

    fn reduced(&self, subject: Subject<'_>, named: &NamedReduction) -> Result<Value, Error> {
        let selection = subject.selection(self.selection.as_deref())?;
        let array = subject.file.dataset(subject.info.name())?;
        let view = ArrayView::new(&array, selection.clone())?;
        let mut execution = Map::new();
        let slots = self.slots(subject, &selection, named, &mut execution)?;
        let fill = subject.fill();
        let meets_all = |number: f64| {
            let is_fill =
                |fill: Scalar| number.partial_cmp(&fill.to_f64()) == Some(Ordering::Equal);
            let is_null = number.is_nan() || fill.is_some_and(is_fill);
            self.filter
                .iter()
                .all(|condition| condition.keeps(number, is_null))
        };
        let has_floats = is_float(subject.info);
        let pad = self.window.as_ref().map_or(Pad::None, |window| window.pad);
        let padding = match (pad, fill) {
            (Pad::None, _) => None,
            (Pad::Zero, _) if has_floats => Some(Scalar::Float(0.0)),
            (Pad::Zero, _) => Some(Scalar::Int(0)),
            (Pad::Nan, _) if has_floats => Some(Scalar::Float(f64::NAN)),
            (Pad::Nan, _) => {
                return Err(value("window.pad", "is `nan`, which integers do not have"));
            }
            (Pad::Fill, Some(fill)) if has_floats || matches!(fill, Scalar::Int(_)) => Some(fill),
            (Pad::Fill, _) => {
                return Err(value(
                    "window.pad",
                    "is `fill`, but the dataset has no attribute `_FillValue`, `missing_value` or \
                     `fill_value` of its type",
                ));
            }
        };
        let is_plain = |slots: &AxisSlots| matches!(slots, AxisSlots::Reduced | AxisSlots::Kept(_));
        let results = if self.filter.is_empty() && slots.iter().all(is_plain) {
            let reduced = |(_, slots): &(usize, &AxisSlots)| matches!(slots, AxisSlots::Reduced);
            let numbered = slots.iter().enumerate().filter(reduced);
            let axes: Vec<usize> = numbered.map(|(axis, _)| axis).collect();
            let found = reduce(&view, named.reduction, &axes)?;
            SlotResults {
                shape: found.shape,
                values: found.values,
                reduced: selection.element_count().unwrap_or(u64::MAX),
            }
        } else {
            let keeps: &dyn Fn(f64) -> bool = &meets_all;
            let options = SlotOptions {
                keeps: (!self.filter.is_empty()).then_some(keeps),
                padding,
                min_count: self.window.as_ref().map_or(0, |window| window.min_count),
            };
            reduce_slots(&view, named.reduction, &slots, options)?
        };
        execution.insert("operation".to_owned(), json!(named.name));
        execution.insert("operation_element_count".to_owned(), json!(results.reduced));
        let name = named.name;
        if let ([], [result]) = (results.shape.as_slice(), results.values.as_slice()) {
            execution.insert(format!("operation_{name}"), number(*result));
        } else {
            let values: Vec<Value> = results.values.into_iter().map(number).collect();
            execution.insert(format!("operation_reduced_{name}"), values.into());
            execution.insert("operation_reduced_shape".to_owned(), json!(results.shape));
        }
        Ok(execution.into())
    }

    /// Returns the results that the positions along each axis belong to, and describes them.
    fn slots(
        &self,
        subject: Subject<'_>,
        selection: &Hyperslab,
        named: &NamedReduction,
        execution: &mut Map<String, Value>,
    ) -> Result<Vec<AxisSlots>, Error> {
        let reduced = subject.axes(&named.axes)?;
        let is_reduced = |axis: usize| named.axes.is_empty() || reduced.contains(&axis);
        let shape = selection.shape();
        let rank = shape.len();
        let kept = |axis: usize| AxisSlots::Kept(shape.get(axis).copied().unwrap_or(0));
        if let Some(spec) = &self.window {
            let axis = subject.axis(&spec.axis)?;
            if !is_reduced(axis) {
                return Err(value(
                    "window.axis",
                    "is not among the axes of the reduction",
                ));
            }
            let windows = windows(spec, shape.get(axis).copied().unwrap_or(0))?;
            execution.insert("window_count".to_owned(), json!(windows.count));
            let slots = (0..rank).map(|at| match at {
                at if at == axis => AxisSlots::Windows(windows),
                at if reduced.contains(&at) => AxisSlots::Reduced,
                at => kept(at),
            });
            return Ok(slots.collect());
        }
        let Some(groups) = &self.groups else {
            let slots = (0..rank).map(|at| {
                if is_reduced(at) {
                    AxisSlots::Reduced
                } else {
                    kept(at)
                }
            });
            return Ok(slots.collect());
        };
        let grouped = subject.axes(&groups.axes)?;
        let covers_each_once = |at: usize| grouped.contains(&at) != reduced.contains(&at);
        let leaves_none = grouped.len() == rank;
        if leaves_none || !(named.axes.is_empty() || (0..rank).all(covers_each_once)) {
            return Err(value(
                "group_by",
                "and the axes of the reduction must contain each axis once, and the reduction at least one",
            ));
        }
        let mut slots = Vec::new();
        let mut count = 1_u64;
        let mut names = Map::new();
        for at in 0..rank {
            let of_axis = match (grouped.contains(&at), selection.axes().get(at)) {
                (true, Some(range)) if groups.by_labels => {
                    let (slots, labels) = label_groups(&subject.needed_labels(at)?, *range);
                    let name = subject
                        .name_of(at)
                        .map_or_else(|| at.to_string(), str::to_owned);
                    names.insert(name, json!(labels));
                    slots
                }
                (true, _) => kept(at),
                (false, _) => AxisSlots::Reduced,
            };
            if let AxisSlots::Kept(of_axis) | AxisSlots::Groups { count: of_axis, .. } = &of_axis {
                count = count.saturating_mul(*of_axis);
            }
            slots.push(of_axis);
        }
        execution.insert("group_count".to_owned(), json!(count));
        if groups.by_labels {
            execution.insert("group_labels".to_owned(), names.into());
        }
        Ok(slots)
    }
}

/// Returns a group for each distinct label of the selected positions, in the order of their first
/// position.
fn label_groups<'a>(labels: &[&'a str], range: AxisRange) -> (AxisSlots, Vec<&'a str>) {
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let mut names = Vec::new();
    let positions = (0..range.count()).map(|at| range.position(at));
    let selected = positions.filter_map(|at| labels.get(usize::try_from(at).ok()?).copied());
    let of: Vec<u64> = selected
        .map(|label| {
            let next = u64::try_from(names.len()).unwrap_or(u64::MAX);
            *numbers.entry(label).or_insert_with(|| {
                names.push(label);
                next
            })
        })
        .collect();
    let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
    (AxisSlots::Groups { of, count }, names)
}

/// Compares extents, names and labels of axes of two datasets.
fn alignment(left: Subject<'_>, spec: &AlignSpec) -> Result<Value, Error> {
    let right = Subject::find(left.file, &spec.with)?;
    let mut axes = Vec::new();
    let mut aligned = true;
    for label in &spec.axes {
        let (one, other) = (left.axis(label)?, right.axis(label)?);
        let extent =
            |subject: Subject<'_>, axis: usize| subject.info.grid().shape().get(axis).copied();
        let extents = (extent(left, one), extent(right, other));
        let names = (left.name_of(one), right.name_of(other));
        let labels_ok = left.labels(one) == right.labels(other);
        let reason = if extents.0 != extents.1 {
            Some("the extents differ")
        } else if names.0 != names.1 {
            Some("the names of the axes differ")
        } else if !labels_ok {
            Some("the labels differ")
        } else {
            None
        };
        aligned &= reason.is_none();
        axes.push(json!({
            "axis": label, "ok": reason.is_none(), "extent_left": extents.0, "extent_right": extents.1,
            "dim_name_left": names.0, "dim_name_right": names.1, "labels_ok": labels_ok, "reason": reason,
        }));
    }
    Ok(json!({ "aligned": aligned, "left": left.info.name(), "with": spec.with, "axes": axes }))
}

/// Converts a result to a JSON number; NaN and infinities, and integers beyond 64 bits, become null
/// and floats.
fn number(result: Scalar) -> Value {
    match result {
        Scalar::Int(whole) => i64::try_from(whole)
            .map(Value::from)
            .or_else(|_| u64::try_from(whole).map(Value::from))
            .unwrap_or_else(|_| result.to_f64().into()),
        Scalar::Float(number) => number.into(),
    }
}
