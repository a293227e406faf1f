//! Boxes that miss a store.

use zvf::{Dataset, query::geometry::Bbox};

/// Why nothing is in a box, where the bounds of the store say so.
pub(crate) fn beyond(dataset: &Dataset, bbox: &Bbox) -> Option<String> {
    let root = dataset.root();
    let bounds = root.bounds.as_ref()?;
    let store = bounds.lower().iter().zip(bounds.upper());
    let asked = bbox.lo().iter().zip(bbox.hi());
    let sides = root.axes.iter().zip(store.zip(asked));
    let missed = sides
        .into_iter()
        .find(|(_, ((lower, upper), (lo, hi)))| hi < lower || lo > upper);
    let (axis, ((lower, upper), _)) = missed?;
    let name = &axis.name;
    Some(format!(
        "the box is beside the store, where {name} goes from {lower} to {upper}"
    ))
}
