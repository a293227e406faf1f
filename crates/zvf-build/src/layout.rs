//! Cells and nodes of a plan, in the form of its profile.

mod between;
mod current;
mod older;
pub(crate) mod tables;

use zvf_format::fragment::FragmentIndexBuilder;

use crate::{
    design::Profile,
    error::BuildError,
    parametric,
    plan::{Output, WritePlan},
};

/// The cells of some chunks.
pub(crate) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    match plan.design.profile {
        Profile::V09 => current::cells(plan, chunks),
        Profile::V08 | Profile::Padded => older::cells(plan, chunks),
    }
}

/// The fragment index of links that are all in one group.
pub(crate) fn one_group(links: u64) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    let pushed = builder.push_range(0..links);
    debug_assert!(pushed.is_ok());
    builder.finish()
}

/// All else but the root.
pub(crate) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let mut outputs = match plan.design.profile {
        Profile::V09 => current::rest(plan)?,
        Profile::V08 | Profile::Padded => older::rest(plan)?,
    };
    parametric::write(plan, &mut outputs)?;
    Ok(outputs)
}

/// Refuses cells that 32 bits cannot count, before any is made.
pub(crate) fn check_cells(plan: &WritePlan) -> Result<(), BuildError> {
    let positions = plan.geometry.positions.row_size();
    let widths = plan
        .vertex
        .iter()
        .map(|column| (&*column.name, column.numbers.row_size()));
    let widths: Vec<_> = widths.chain([("vertices", positions)]).collect();
    let check = |chunk: u32, array: &str, bytes: u64| match is_countable(bytes) {
        true => Ok(()),
        false => Err(BuildError::CellSize {
            chunk: plan.name(chunk),
            array: array.to_owned(),
            bytes,
        }),
    };
    for chunk in 0..plan.arranged.chunks.len() as u32 {
        let rows = plan.arranged.vertices(chunk as usize).len() as u64;
        for (array, width) in &widths {
            check(chunk, array, rows.saturating_mul(*width as u64))?;
        }
        let fragments = plan.arranged.fragments(chunk as usize).len() as u64;
        check(
            chunk,
            "vertex_fragments",
            fragments.saturating_mul(17).saturating_add(32),
        )?;
    }
    let Some(links) = &plan.links else {
        return Ok(());
    };
    let row = links.width.get() as u64 * 8 + 16;
    let inside = links.inside.iter().map(|(chunk, cell)| (*chunk, cell));
    let between = links
        .between
        .iter()
        .filter_map(|(chunks, cell)| Some((*chunks.first()?, cell)));
    for (chunk, cell) in inside.chain(between) {
        check(
            chunk,
            "links",
            (cell.links.len() as u64).saturating_mul(row),
        )?;
    }
    Ok(())
}

/// Whether a frame can say how many bytes a cell has.
fn is_countable(bytes: u64) -> bool {
    u32::try_from(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_countable;

    #[test]
    fn w11_cells_of_4_gib_are_refused() {
        assert!(is_countable(u64::from(u32::MAX)));
        assert!(!is_countable(1 << 32));
    }
}
