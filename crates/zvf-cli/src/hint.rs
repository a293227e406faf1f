//! Hints: what to do next after an error, in the words of the command line.

use std::{borrow::Cow, error::Error, fs, io, path::Path};

use zvf::StateError;
use zvf_build::{BuildError, edit::EditError};
use zvf_catalog::CatalogError;
use zvf_files::InputFile;
use zvf_model::{detection::GenerationError, error_chain::error_chain};
use zvf_query::QueryError;
use zvf_store::{CommitError, CreateError, OpenError, SealError};

use crate::display::shell_word;

/// Maximum number of stores in a folder that a hint names.
const MAX_NAMED_STORES: usize = 8;

/// The operation that failed; hints depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Append,
    /// `zvf edit`: objects of the file replace those with equal ids.
    Edit,
    /// `zvf edit --remove`: objects of the file replace the named ones.
    ReplaceNamed,
    Delete,
    /// `zvf edit --attributes`.
    Attributes,
    Compact,
    Migrate,
    /// `zvf task plan … create`.
    Plan,
    Pyramid,
    Sample,
}

/// An error message with a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}; {hint}")]
struct HintedError {
    message: String,
    hint: String,
}

/// A hint, with the message that replaces the error's own where that does not suit a command line.
struct Hint {
    message: Option<String>,
    text: Cow<'static, str>,
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self {
            message: None,
            text: text.into(),
        }
    }
}

impl Hint {
    fn with_message(message: String, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: Some(message),
            text: text.into(),
        }
    }
}

/// Adds a hint to an error of `operation`, if there is one.
pub(crate) fn with_hint(operation: Operation, error: zvf::Error) -> Box<dyn Error> {
    match hint(operation, &error) {
        None => error.into(),
        Some(Hint { message, text }) => Box::new(HintedError {
            message: message.unwrap_or_else(|| error_chain(&error)),
            hint: text.into_owned(),
        }),
    }
}

fn hint(operation: Operation, error: &zvf::Error) -> Option<Hint> {
    if let Some(error) = error.cause::<BuildError>() {
        return build_error_hint(error);
    }
    if let Some(error) = error.cause::<EditError>() {
        return edit_hint(operation, error);
    }
    if let Some(error) = error.cause::<StateError>() {
        return state_hint(operation, error);
    }
    if let Some(error) = error.cause::<CreateError>() {
        return match (operation, error) {
            (Operation::Migrate, CreateError::AlreadyExists) => {
                Some("replace it with --overwrite".into())
            }
            (Operation::Plan, CreateError::AlreadyExists) => {
                Some("delete it first, or choose another address".into())
            }
            (Operation::Plan, CreateError::Leftovers) => {
                Some("discard it with --restart, or run and commit its plan".into())
            }
            _ => create_hint(error).map(Hint::from),
        };
    }
    if let Some(CommitError::Conflict { .. }) = error.cause() {
        return Some(match operation {
            Operation::Append
            | Operation::Edit
            | Operation::ReplaceNamed
            | Operation::Delete
            | Operation::Compact => "nothing was changed; try again, or raise --retries".into(),
            _ => "nothing was changed; try again".into(),
        });
    }
    match error.cause() {
        Some(CatalogError::Damaged(_)) if operation == Operation::Migrate => {
            Some("skip it with --skip-damaged".into())
        }
        _ => None,
    }
}

fn state_hint(operation: Operation, error: &StateError) -> Option<Hint> {
    match error {
        StateError::AttributeExists { .. } if operation == Operation::Sample => {
            Some("replace it with --overwrite".into())
        }
        StateError::NoStore { .. } if operation != Operation::Migrate => {
            Some("create a store with zvf create".into())
        }
        StateError::Unchangeable { address, profile } => Some(Hint::with_message(
            format!(
                "{address} is a store of {profile}, and only stores of 0.9 and 0.10 can be changed"
            ),
            "convert it with zvf migrate",
        )),
        _ => None,
    }
}

fn build_error_hint(error: &BuildError) -> Option<Hint> {
    match error {
        BuildError::OutOfBounds {
            vertex,
            axis,
            value,
            lower,
            upper,
        } => Some(Hint::with_message(
            format!(
                "vertex {vertex} lies outside the bounds on axis {axis}: {value} is not in {lower} to {upper}"
            ),
            "extend the bounds with --out-of-bounds expand, or drop such items with --out-of-bounds ignore",
        )),
        BuildError::InvalidName { what, .. } if what.ends_with("attribute") => {
            Some("rename it with --rename NAME=NEW".into())
        }
        BuildError::AttributeIsAxis(name) => Some(Hint::with_message(
            format!(
                "the vertex attribute {name:?} has the name of an axis, and conditions could not tell them apart"
            ),
            format!(
                "rename it with --rename {}, or name the axes with --axes",
                shell_word(&format!("{name}=NEW"))
            ),
        )),
        BuildError::ObjectId { id: -2..=-1, .. } => Some(
            "give each vertex one object, or, for points without objects, write the file with zvf \
             query --no-objects"
                .into(),
        ),
        BuildError::MissingInput {
            what: "part_offsets",
            ..
        } => Some(
            "give a table a column part or object_id, which marks the rows of a path, or name it \
             with --rename COLUMN=object_id"
                .into(),
        ),
        BuildError::MissingInput { what: "links", .. } => Some(
            "give an npz file an array links with the corners of each face, or a table \
             NAME.links.csv beside NAME.csv"
                .into(),
        ),
        _ => None,
    }
}

fn edit_hint(operation: Operation, error: &EditError) -> Option<Hint> {
    match (operation, error) {
        (_, EditError::Build(error)) => build_error_hint(error),
        (Operation::Edit, EditError::Unnamed) => Some(
            "name the objects to replace with --remove, write points with their addresses by zvf query \
             --row-ids, or add the file with zvf append"
                .into(),
        ),
        (_, EditError::Severed { links }) => Some(Hint::with_message(
            format!("{links} links to other objects would be lost"),
            "add the objects at their other ends, and the links, to the file",
        )),
        (_, EditError::ObjectExists(id)) => Some(Hint::with_message(
            format!("object {id} already exists"),
            match operation {
                Operation::ReplaceNamed => "name it in --remove as well, or give it another id",
                Operation::Append => "replace it with zvf edit, or add it under a new id with --ids new",
                _ => "replace it with zvf edit, or give it another id",
            },
        )),
        (Operation::Edit, EditError::UnknownObject(_)) => {
            Some("add objects with zvf append, or name the objects to replace with --remove".into())
        }
        (_, EditError::UnknownAttribute { .. }) => Some(
            "to leave it out, create a store from the file, write it with zvf query --select NAMES, \
             and give that file"
                .into(),
        ),
        (_, EditError::ChunkBelowGrid { .. }) => {
            Some(
                "zvf query STORE -o all.npz, then zvf create NEW --from all.npz --bounds LOWER,UPPER"
                    .into(),
            )
        }
        (Operation::Attributes, EditError::AttributeType { .. }) => {
            Some("convert the column, or replace the attribute with --replace".into())
        }
        _ => None,
    }
}

fn create_hint(error: &CreateError) -> Option<&'static str> {
    match error {
        CreateError::AlreadyExists => {
            Some("replace it with --overwrite, or add to it with zvf append")
        }
        CreateError::NotEmpty(_) => Some("choose another address, or move the contents away"),
        CreateError::InStore(_) => Some("name an address outside of it"),
        CreateError::Leftovers => Some("replace them with --overwrite"),
        _ => None,
    }
}

/// Returns a hint for an error of any command that opens a store.
pub(crate) fn open_hint(error: &zvf::Error) -> Option<String> {
    const ROOT: &str = "give the root of a store, the folder whose zarr.json names zarr_vectors";
    let hint = match error.cause() {
        Some(OpenError::Feature { feature, .. }) => Some(format!(
            "rebuild zvf with it: cargo install --path crates/zvf-cli --features {feature}"
        )),
        Some(OpenError::NotAFolder(file)) if InputFile::parse(file).is_ok() => {
            let store = Path::new(file).with_extension("zv");
            let store = shell_word(&store.to_string_lossy());
            let file = shell_word(file);
            Some(format!(
                "make a store of it: zvf create {store} --from {file}"
            ))
        }
        _ => None,
    };
    let text = match error.cause() {
        Some(StateError::NoStore { exists: false, .. }) => {
            "give the folder that holds the store's zarr.json"
        }
        Some(StateError::NoStore { address, .. }) => {
            let stores = stores_in(address);
            return Some(stores.map_or(ROOT.to_owned(), |stores| {
                format!("give one of the stores in it: {stores}")
            }));
        }
        Some(StateError::Unfinished { .. }) => {
            "wait for zvf create, or run it again, which replaces what an interrupted run left"
        }
        _ => match (error.cause(), error.cause()) {
            (Some(GenerationError::Undetermined), _) => ROOT,
            (_, Some(QueryError::OverVertices { outdated, .. })) if !outdated.is_empty() => {
                "run zvf pyramid --refresh, raise --budget, or narrow the query"
            }
            (_, Some(QueryError::OverVertices { .. })) => {
                "raise --budget or narrow the query; zvf pyramid makes coarser levels, with fewer \
                 objects by --sparsity"
            }
            (_, Some(QueryError::OutdatedLinks(_))) => "run zvf pyramid --refresh",
            _ => return hint,
        },
    };
    Some(text.to_owned())
}

/// Returns a hint for an error of the file system, if a command can only be repeated after a change
/// of the disk.
pub(crate) fn file_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = error;
    let kind = loop {
        match cause.downcast_ref::<io::Error>() {
            Some(error) => break error.kind(),
            None => cause = cause.source()?,
        }
    };
    let text = match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free space on it, then run the command again"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only: write to another folder",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns a hint for an object that differs from the inventory of a sealed store.
pub(crate) fn seal_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = error;
    let found = loop {
        match cause.downcast_ref::<SealError>() {
            Some(error) => break error,
            None => cause = cause.source()?,
        }
    };
    let text = match found {
        SealError::Inventory => {
            "copy the store again with its folder .zvf, or write a new inventory: zvf validate --seal"
        }
        _ => {
            "restore the file from a copy or, if another program changed the store, seal it again: zvf \
             validate --seal. zvf query --no-seal reads it as it is"
        }
    };
    Some(text.to_owned())
}

/// Adds a hint to the error of a query, in the words of the options of `zvf query`.
pub(crate) fn with_query_hint(error: zvf::Error, has_filter: bool) -> Box<dyn Error> {
    let (message, hint) = match (error.cause(), error.cause()) {
        (Some(QueryError::NoObject { id, level }), _) => (
            format!("level {level} has no object {id}"),
            "skip it with --keep-going".to_owned(),
        ),
        (Some(QueryError::NoGroup { id, level }), _) => (
            format!("level {level} has no group {id}"),
            "skip it with --keep-going".to_owned(),
        ),
        (
            _,
            Some(
                absent @ CatalogError::NoAttribute {
                    scope: None, name, ..
                },
            ),
        ) if has_filter && !absent.has_suggestion() => (
            error_chain(&error),
            format!("put text to compare with in single quotes, as '{name}'"),
        ),
        _ => return error.into(),
    };
    Box::new(HintedError { message, hint })
}

/// Names the stores in a folder, up to [`MAX_NAMED_STORES`]; `None` if there is none.
fn stores_in(address: &str) -> Option<String> {
    let entries = fs::read_dir(address).ok()?.flatten();
    let stores = entries.filter(|entry| entry.path().join("zarr.json").is_file());
    let mut names: Vec<String> = stores
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(MAX_NAMED_STORES);
    names.truncate(MAX_NAMED_STORES);
    let names = names.join(", ");
    Some(match more {
        0 => names,
        more => format!("{names} and {more} more"),
    })
}
