//! Maps faults of metadata parsing to rules.

use zvf_model::{
    key::Key,
    metadata::{MetadataError, MetadataFault, MetadataNote, Noted},
};

use crate::{context::Context, rule::Rule, rules::metadata as rules};

/// Returns the rule that a fault violates.
pub(super) fn rule(fault: &MetadataFault) -> &'static Rule {
    match fault {
        MetadataFault::Missing => &rules::FIELD_MISSING,
        MetadataFault::Convention(_)
        | MetadataFault::OctreeChunks
        | MetadataFault::ManifestBlocks(_) => &rules::REQUIRED_CAPABILITY,
        MetadataFault::Kind { .. } => &rules::FIELD_TYPE,
        MetadataFault::Word { .. } | MetadataFault::Extension(_) => &rules::UNKNOWN_WORD,
        MetadataFault::Length { .. } | MetadataFault::Rank { .. } => &rules::LIST_LENGTH,
        MetadataFault::Dtype { .. } => &rules::DTYPE,
        MetadataFault::Segment { .. } | MetadataFault::Delta { .. } => &rules::SEGMENT,
        MetadataFault::Key(_) => &rules::INVALID_NAME,
        MetadataFault::Twice(_) => &rules::DUPLICATE,
        MetadataFault::Disagrees { .. } => &rules::CONTRADICTION,
        MetadataFault::Bins(_) => &rules::BINS,
        MetadataFault::Grid(_) => &rules::GRID,
        MetadataFault::Scale(_) => &rules::CHUNK_SCALE,
        _ => &rules::FIELD_RANGE,
    }
}

/// Reports a fault that the parser tolerated.
pub(super) fn note(context: &Context<'_>, key: &Key, note: &MetadataNote) {
    let message = format!("{}; {}", note.fault, note.assumed);
    context.report_at(rule(&note.fault), key, &note.path, message);
}

/// Reports a fault that stopped the parser.
pub(super) fn error(context: &Context<'_>, key: &Key, error: &MetadataError) {
    context.report_at(rule(&error.fault), key, &error.path, &error.fault);
}

/// Returns the parsed value after reporting all faults around it. Tags are checked elsewhere.
pub(super) fn noted<T>(
    context: &Context<'_>,
    key: &Key,
    read: Result<Noted<T>, MetadataError>,
) -> Option<T> {
    match read {
        Ok(read) => {
            for found in read.notes.iter().filter(|found| !is_tag(found)) {
                note(context, key, found);
            }
            Some(read.value)
        }
        Err(fault) => {
            error(context, key, &fault);
            None
        }
    }
}

pub(super) fn is_tag(note: &MetadataNote) -> bool {
    let tags = [
        "attributes.zv_array",
        "attributes.zvf_array",
        "attributes.zarr_vectors.kind",
    ];
    tags.contains(&note.path.as_str())
}
