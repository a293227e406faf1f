//! What profiles have in common.

use zvf_format::manifest::ObjectManifestBuilder;

use crate::{arrange::NO_OBJECT, columns::Column, error::BuildError, plan::WritePlan};

/// A row for each fragment of a chunk: that of its object. Of objects without a
/// row, zeros.
pub(super) fn of_fragments(plan: &WritePlan, column: &Column, chunk: u32) -> Vec<u8> {
    let given = plan
        .objects
        .as_ref()
        .map_or(&[][..], |objects| &objects.given);
    let mut bytes = Vec::new();
    for fragment in plan.arranged.fragments(chunk as usize) {
        let row = match fragment.object {
            NO_OBJECT => None,
            object => given.get(object as usize).copied().flatten(),
        };
        match row {
            Some(row) => bytes.extend_from_slice(column.numbers.row(row)),
            None => bytes.resize(bytes.len() + column.numbers.row_size(), 0),
        }
    }
    bytes
}

/// The manifest of each object: one block a fragment.
pub(super) fn manifests(plan: &WritePlan) -> Result<Vec<Vec<u8>>, BuildError> {
    let objects = plan.objects.as_ref().map_or(0, |objects| objects.ids.len());
    let manifest = |object: usize| {
        let mut builder = ObjectManifestBuilder::new(plan.geometry.axes());
        for &fragment in plan.arranged.manifests.of(object) {
            let chunk = plan.arranged.fragments[fragment as usize].chunk;
            let coords = &plan.arranged.chunks[chunk as usize];
            let pushed = builder.push_single(coords, plan.arranged.number(fragment));
            pushed.map_err(|_| BuildError::CellSize {
                chunk: plan.name(chunk),
                array: "object_index/manifests".to_owned(),
                bytes: u64::MAX,
            })?;
        }
        Ok(builder.finish())
    };
    (0..objects).map(manifest).collect()
}
