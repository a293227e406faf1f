//! What to do about what the library refuses, by the command that asked.

use std::{error::Error, fs};

use zvf::{
    CommitError, CreateError, OpenError,
    build::{BuildError, edit::EditError},
    model::generation::GenerationError,
    query::QueryError,
};

use crate::command::sentence;

/// Stores of a folder that are named.
const MOST_NAMED: usize = 8;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Append,
    /// Objects in the place of those of the same ids.
    Edit,
    /// Objects in the place of others that are named.
    Exchange,
    Delete,
    Compact,
    Migrate,
    Pyramid,
    Sample,
}

/// An error with the way out.
#[derive(Debug, thiserror::Error)]
#[error("{said}; {way_out}")]
struct Advised {
    said: String,
    way_out: String,
}

/// The error, with the way out where there is one.
pub(crate) fn advised(verb: Verb, error: zvf::Error) -> Box<dyn Error> {
    match advice(verb, &error) {
        None => error.into(),
        Some((said, way_out)) => {
            let said = said.unwrap_or_else(|| sentence(&error));
            let way_out = way_out.to_owned();
            Box::new(Advised { said, way_out })
        }
    }
}

/// What is said instead of the error, where its own words fit no command line, and
/// the way out.
fn advice(verb: Verb, error: &zvf::Error) -> Option<(Option<String>, &'static str)> {
    use zvf::Error as E;
    let edit = match error {
        E::Edit(error) => Some(error),
        _ => None,
    };
    let refusal = match (error, edit) {
        (E::Refused(refusal), _) | (_, Some(EditError::Build(refusal))) => Some(refusal),
        _ => None,
    };
    if let Some(&BuildError::OutOfBounds {
        vertex,
        axis,
        value,
        lower,
        upper,
    }) = refusal
    {
        let said = format!(
            "vertex {vertex} lies outside the bounds on axis {axis}: {value} is not in {lower} to {upper}"
        );
        let way_out = "--out-of-bounds expand makes them larger, ignore leaves out what is outside";
        return Some((Some(said), way_out));
    }
    if let Some(BuildError::MissingInput {
        what: "part_offsets",
        ..
    }) = refusal
    {
        return Some((
            None,
            "in a table, a column part or object_id says which rows are one path",
        ));
    }
    match (verb, error, edit) {
        (
            Verb::Migrate,
            E::Create {
                source: CreateError::AlreadyExists,
                ..
            },
            _,
        )
        | (Verb::Sample, E::AttributeThere { .. }, _) => Some((None, "--overwrite replaces it")),
        (Verb::Migrate, E::Query(QueryError::Damaged(_)), _) => {
            Some((None, "--skip-damaged leaves it out"))
        }
        (Verb::Migrate, E::NoStore { .. } | E::Open(OpenError::NotFound(_)), _) => None,
        (_, E::Create { source, .. }, _) => Some((None, of_create(source)?)),
        (_, E::NoStore { .. } | E::Open(OpenError::NotFound(_)), _) => {
            Some((None, "zvf create makes one"))
        }
        (_, E::Unchangeable { address, profile }, _) => {
            let said =
                format!("{address} is a store of {profile}, and only those of 0.9 are changed");
            Some((Some(said), "zvf migrate makes one of it"))
        }
        (Verb::Sample, E::Commit(CommitError::Conflict { .. }), _) => {
            Some((None, "nothing was changed; try again"))
        }
        (_, E::Commit(CommitError::Conflict { .. }), _) => Some((
            None,
            "nothing was changed; try again, or more often with --retries",
        )),
        (verb, _, Some(EditError::ObjectExists(id))) => {
            let said = format!("object {id} is there already");
            let way_out = match verb {
                Verb::Exchange => "name it in --remove too, or add it under another id",
                _ => "zvf edit replaces it, or add it under another id",
            };
            Some((Some(said), way_out))
        }
        (Verb::Edit, _, Some(EditError::UnknownObject(_))) => Some((
            None,
            "zvf append adds objects, --remove says which go for others",
        )),
        (Verb::Edit, E::Unnamed, _) => Some((
            None,
            "--remove says which go, zvf append adds to what is there",
        )),
        (_, E::Severed { links }, _) => {
            let said = format!("{links} links to other objects would be lost");
            let way_out =
                "put the objects at their other ends, and those links, in the file as well";
            Some((Some(said), way_out))
        }
        _ => None,
    }
}

/// What lets a store be opened that is refused.
pub(crate) fn way_in(error: &zvf::Error) -> Option<String> {
    Some(match error {
        zvf::Error::Open(OpenError::Feature { feature, .. }) => {
            format!("build zvf with it: cargo install --path crates/zvf-cli --features {feature}")
        }
        zvf::Error::Open(OpenError::NotFound(_)) => {
            "give the folder that holds the store's zarr.json".to_owned()
        }
        zvf::Error::NoStore { address } if let Some(stores) = stores_in(address) => {
            format!("give one of the stores in it: {stores}")
        }
        zvf::Error::Generation(GenerationError::Undetermined) | zvf::Error::NoStore { .. } => {
            "the root of a store is the folder whose zarr.json names zarr_vectors".to_owned()
        }
        zvf::Error::Query(QueryError::OverVertices { .. }) => {
            "raise --budget or ask for less; zvf pyramid makes coarser levels, with --sparsity of fewer objects"
                .to_owned()
        }
        _ => return None,
    })
}

/// The error of a query, in the words of its options.
pub(crate) fn asked(error: zvf::Error, is_filtered: bool) -> Box<dyn Error> {
    let (said, way_out) = match &error {
        zvf::Error::Query(QueryError::NoObject { id, level }) => (
            format!("there is no object {id} in level {level}"),
            "--keep-going leaves it out".to_owned(),
        ),
        zvf::Error::Query(QueryError::NoGroup { id, level }) => (
            format!("there is no group {id} in level {level}"),
            "--keep-going leaves it out".to_owned(),
        ),
        zvf::Error::Query(QueryError::NoAttribute {
            scope: None, name, ..
        }) if is_filtered && !error.to_string().ends_with('?') => (
            sentence(&error),
            format!("a word to compare with is in quotes, as '{name}'"),
        ),
        _ => return error.into(),
    };
    Box::new(Advised { said, way_out })
}

fn of_create(error: &CreateError) -> Option<&'static str> {
    match error {
        CreateError::AlreadyExists => Some("--overwrite replaces it, zvf append adds to it"),
        CreateError::NotEmpty(_) => Some("choose another place, or move that away"),
        CreateError::Leftovers => Some("--overwrite does that"),
        _ => None,
    }
}

/// What in a folder looks like a store, a few of them by name; `None` where nothing does.
fn stores_in(address: &str) -> Option<String> {
    let entries = fs::read_dir(address).ok()?.flatten();
    let stores = entries.filter(|entry| entry.path().join("zarr.json").is_file());
    let names = stores.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(names.join(", ")),
        (false, more) => Some(format!("{} and {more} more", names.join(", "))),
    }
}
