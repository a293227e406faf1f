//! Which rule a fault breaks that reading metadata came upon.

use zvf_model::{
    key::Key,
    metadata::{MetadataError, MetadataFault, MetadataNote, Noted},
};

use crate::{context::Context, rule::Rule, rules::metadata as rules};

/// The rule of a fault.
pub(super) fn rule(fault: &MetadataFault) -> &'static Rule {
    match fault {
        MetadataFault::Missing => &rules::FIELD_MISSING,
        MetadataFault::Kind { .. } => &rules::FIELD_KIND,
        MetadataFault::Word { .. } | MetadataFault::Extension(_) => &rules::WORD,
        MetadataFault::Length { .. } | MetadataFault::Rank { .. } => &rules::DIMENSION,
        MetadataFault::Dtype { .. } => &rules::DTYPE,
        MetadataFault::Segment { .. } | MetadataFault::Delta { .. } => &rules::SEGMENT,
        MetadataFault::Key(_) => &rules::NAME,
        MetadataFault::Twice(_) => &rules::TWICE,
        MetadataFault::Disagrees { .. } => &rules::CONTRADICTION,
        MetadataFault::Bins(_) => &rules::BINS,
        MetadataFault::Grid(_) => &rules::GRID,
        MetadataFault::Scale(_) => &rules::CHUNK_SCALE,
        _ => &rules::FIELD_RANGE,
    }
}

/// Writes down what a reader read past.
pub(super) fn note(context: &Context<'_>, key: &Key, note: &MetadataNote) {
    let message = format!("{}; {}", note.fault, note.assumed);
    context.find_at(rule(&note.fault), key, &note.path, message);
}

/// Writes down what a reader stopped at.
pub(super) fn error(context: &Context<'_>, key: &Key, error: &MetadataError) {
    context.find_at(rule(&error.fault), key, &error.path, &error.fault);
}

/// What was read, with everything wrong around it written down. Tags are checked
/// elsewhere.
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
    let tags = ["attributes.zv_array", "attributes.zvf_array"];
    tags.contains(&note.path.as_str())
}
