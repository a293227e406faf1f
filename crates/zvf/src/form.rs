//! The form of the cells of a store: profile, compression, checksums.

use serde_json::Value;
use zvf_build::{CellChecksums, CellCompression, Profile, migrate::MigrationTarget};
use zvf_model::{generation::Generation, key::Key, zarr::Node};

use crate::{dataset::Dataset, failure::Failure, nodes};

/// Returns the form of the cells of a store, for new cells.
pub(crate) async fn form(dataset: &Dataset) -> Result<MigrationTarget, Failure> {
    let profile = match (dataset.layout().profile(), dataset.detection().generation) {
        ("0.9", _) => Profile::V09,
        (_, Generation::V0_8_0) => Profile::V08,
        _ => {
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
    let vertices = nodes::named(Key::parse("0/vertices"), "0/vertices")?;
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
    let mut compression = CellCompression::None;
    for codec in array.codecs.of_cells() {
        let level = codec.setting("level").and_then(Value::as_i64);
        let compressor = codec.setting("cname").and_then(Value::as_str);
        compression = match (codec.name.as_str(), compressor) {
            ("zstd", _) => {
                let level = level.and_then(|level| i32::try_from(level).ok());
                CellCompression::Zstd(level.unwrap_or(1))
            }
            ("gzip", _) => {
                let level = level.and_then(|level| u32::try_from(level).ok());
                CellCompression::Gzip(level.unwrap_or(5))
            }
            ("blosc", Some("lz4")) => CellCompression::Auto,
            ("blosc", _) => CellCompression::Blosc,
            _ => compression,
        };
    }
    let checksums = match array.codecs.has_checksum() {
        true => CellChecksums::On,
        false => CellChecksums::Off,
    };
    Ok((compression, checksums))
}
