//! Unconstrained values of `zarr.json`.

/// File, path of the value, and reason.
const FREE: &[(&str, &str, &str)] = &[(
    "0/vertex_attributes/word/zarr.json",
    "attributes/categories/",
    "a category may be any text",
)];

/// Returns whether a value is unconstrained, so that no rule can find a change.
pub(super) fn is_free(file: &str, what: &str) -> bool {
    FREE.iter()
        .any(|(end, place, _)| file.ends_with(end) && what.starts_with(place))
}
