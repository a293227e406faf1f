//! Axes as columns of predicates, and pruning of chunks by conditions on them.

use std::collections::BTreeMap;

use zvf_model::{grid::ChunkCoord, root::Axis};

use crate::{
    predicate::{
        BindError, BoundPredicate, ColumnRef, ColumnSource, ColumnType, Datum, FindError, Number,
        Predicate, ResolvedColumn, Zone, ZoneMap,
    },
    resolve::area::ChunkSpace,
};

/// Names of the first axes of a store that names its axes otherwise.
const DEFAULT_NAMES: [&str; 3] = ["x", "y", "z"];

/// The columns of a predicate that are axes: the index of the axis by the name of the column.
pub(crate) type AxisColumns = BTreeMap<String, usize>;

/// Returns the axis that a column name means: the axis of this name; the axis whose name differs
/// in case only; or, if no axis is called x, y or z, the first, second or third axis.
pub(crate) fn axis_of_column(axes: &[Axis], name: &str) -> Option<usize> {
    let is_called = |name: &str| {
        let name = name.to_owned();
        move |axis: &Axis| axis.name.eq_ignore_ascii_case(&name)
    };
    let exact = axes.iter().position(|axis| axis.name == name);
    exact
        .or_else(|| axes.iter().position(is_called(name)))
        .or_else(|| {
            let has_default = DEFAULT_NAMES
                .iter()
                .any(|name| axes.iter().any(is_called(name)));
            let at = DEFAULT_NAMES.iter().position(|other| *other == name)?;
            (!has_default && at < axes.len()).then_some(at)
        })
}

/// Returns another name that means the same axis as `name` does and is not that of an attribute.
pub(crate) fn axis_spelling(
    axes: &[Axis],
    name: &str,
    is_attribute: impl Fn(&String) -> bool,
) -> Option<String> {
    let at = axis_of_column(axes, name)?;
    let own = axes.get(at)?.name.clone();
    let mut spellings = [name.to_ascii_uppercase(), name.to_ascii_lowercase(), own].into_iter();
    let spelling =
        spellings.find(|other| axis_of_column(axes, other) == Some(at) && !is_attribute(other))?;
    let column = ColumnRef {
        scope: None,
        name: spelling,
        channel: None,
    };
    Some(column.to_string())
}

/// The part of a predicate that depends on positions alone. It prunes chunks.
#[derive(Clone, Debug)]
pub(crate) struct AxisFilter(BoundPredicate);

impl AxisFilter {
    /// Takes the conditions of a conjunction whose columns are all axes; `None` if there are none.
    ///
    /// # Errors
    ///
    /// Returns [`BindError`] if a condition compares an axis with text or a bool.
    pub(crate) fn new(
        predicate: &Predicate,
        axes: &AxisColumns,
    ) -> Result<Option<Self>, BindError> {
        let parts = match predicate {
            Predicate::And(parts) => parts.as_slice(),
            one => core::slice::from_ref(one),
        };
        let is_of_axes = |part: &&Predicate| {
            let columns = part.columns();
            !columns.is_empty() && columns.iter().all(|column| axes.contains_key(&column.name))
        };
        let parts: Vec<Predicate> = parts.iter().filter(is_of_axes).cloned().collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let bound = Predicate::And(parts).bind(&AxisNames(axes))?;
        Ok(Some(Self(bound)))
    }

    /// Returns whether a vertex of the chunk may satisfy the conditions.
    pub(crate) fn may_hold_in(&self, space: &ChunkSpace, chunk: &ChunkCoord) -> bool {
        let Some(bbox) = space.chunk_box(chunk) else {
            return true;
        };
        let bounds = bbox.lo().iter().zip(bbox.hi());
        let zones = bounds.map(|(lo, hi)| Zone {
            min: Number::Float(*lo),
            max: Number::Float(*hi),
            // A foreign writer may have stored NaN in any chunk.
            has_missing: true,
        });
        self.0.may_match(&AxisZones(zones.collect()))
    }
}

/// Binds names of axes; a column's id is its axis.
struct AxisNames<'a>(&'a AxisColumns);

impl ColumnSource for AxisNames<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let axis = self.0.get(&column.name);
        Ok(ResolvedColumn {
            id: *axis.ok_or(FindError::Absent)?,
            channels: 1,
            column_type: ColumnType::Numbers,
        })
    }

    fn cell(&self, _: usize, _: u32, _: usize) -> Datum {
        Datum::Missing
    }
}

struct AxisZones(Vec<Zone>);

impl ZoneMap for AxisZones {
    fn zone(&self, id: usize, _: u32) -> Option<Zone> {
        self.0.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axes: &[&str], name: &str, axis: Option<usize>) {
        let axes: Vec<Axis> = axes
            .iter()
            .map(|name| Axis {
                name: (*name).to_owned(),
                kind: None,
                unit: None,
            })
            .collect();
        assert_eq!(axis_of_column(&axes, name), axis, "{name}");
    }

    #[test]
    fn axes_are_found_by_name_then_by_default_name() {
        check(&["x", "y", "z"], "z", Some(2));
        check(&["z", "y", "x"], "x", Some(2));
        check(&["Z", "Y", "X"], "x", Some(2));
        check(&["x", "X"], "X", Some(1));
        check(&["lon", "lat"], "lat", Some(1));
        check(&["lon", "lat"], "y", Some(1));
        check(&["lon", "lat"], "z", None);
        check(&["t", "z", "y"], "x", None);
        check(&["x", "y"], "w", None);
    }
}
