//! The form of the cells of a store: profile, compression, checksums.

use zvf_build::{CellChecksums, CellCompression, Profile, migrate::MigrationTarget};
use zvf_dataset::{Dataset, Failure, nodes};
use zvf_model::{
    generation::Generation,
    layout::{ArrayRole, LevelKeys},
    level::LevelId,
    zarr::Node,
};

/// Returns the form of the cells of a store, for new cells.
pub async fn form(dataset: &Dataset) -> Result<MigrationTarget, Failure> {
    let layout = dataset.layout();
    let profile = match Profile::of_layout(layout).filter(|profile| profile.is_current()) {
        Some(profile) => profile,
        None if layout.generation == Generation::V0_8_0 => Profile::V08,
        None => {
            return Err(Failure::NoPyramid {
                why: "its generation is too old; convert it to 0.9 with `zvf migrate` first",
            });
        }
    };
    let (compression, checksums) = codecs(dataset).await?;
    Ok(MigrationTarget::new(profile, compression, checksums)?)
}

/// Returns the compression of vertex cells, and whether they carry checksums.
async fn codecs(dataset: &Dataset) -> Result<(CellCompression, CellChecksums), Failure> {
    let keys = LevelKeys {
        layout: *dataset.layout(),
        level: LevelId::FULL,
    };
    let vertices = nodes::place(keys.node(&ArrayRole::Vertices))?;
    let mut node = nodes::read_one(dataset.store(), &vertices).await?;
    if let Some(Node::Group(_)) = &node {
        // Before 0.9, every chunk is an array.
        let children = nodes::children(dataset.store(), &vertices).await?;
        if let Some(child) = children.folders.first() {
            let key = nodes::child(&vertices, child)?;
            node = nodes::read_one(dataset.store(), &key).await?;
        }
    }
    let Some(Node::Array(array)) = &node else {
        return Ok((CellCompression::None, CellChecksums::Off));
    };
    let checksums = if array.codecs.has_checksum() {
        CellChecksums::On
    } else {
        CellChecksums::Off
    };
    Ok((CellCompression::of(array.codecs.of_cells()), checksums))
}
