//! Values of `zarr.json` that may be anything.

/// Where in which files, and why.
const FREE: &[(&str, &str, &str)] = &[(
    "0/vertex_attributes/word/zarr.json",
    "attributes/categories/",
    "a category may be any text",
)];

/// Whether a value may be anything, so that there is nothing to find.
pub(super) fn is_free(file: &str, what: &str) -> bool {
    FREE.iter()
        .any(|(end, place, _)| file.ends_with(end) && what.starts_with(place))
}
