//! The contract of [`Fetch`], and a test of it for any implementation.
//!
//! # The contract
//!
//! * A *payload* is the decoded chunk of a cell: the bytes after all codecs of the array, without
//!   the frame of a single byte string. Where a chunk holds several byte strings, the payload is
//!   the whole frame. In a sharded array a cell is an inner chunk.
//! * A *part* is a range of the payload within its size. [`Fetched::size`] is the size of the whole
//!   payload also for a part.
//! * A cell is *absent* if its object does not exist, or its shard does not list it. An absent cell
//!   is `None`, not an error, and an empty payload is not absent.
//! * Results have the order of the requests, one for each, also where requests are equal.
//! * One cell that cannot be read does not affect the others of its batch. Bytes that no retry would
//!   change are [`FetchProblem::Damaged`]; everything else has another problem.
//! * [`Fetch::nodes`] returns `None` where there is no `zarr.json`, also where there are children.
//! * [`Fetch::children`] lists names in ascending order, with those of folders that have no
//!   `zarr.json` but contain one. A key that does not exist has no children.
//! * A future may be dropped at any time. Requests that were not sent are then not sent.
//!
//! # The test
//!
//! Store [`objects`] where the implementation reads, and call [`verify`]:
//!
//! ```
//! # async fn test<F: zvf_model::fetch::Fetch>(
//! #     put: impl Fn(&str, &[u8]),
//! #     open: impl Fn() -> F,
//! # ) -> Result<(), zvf_model::fetch::contract::Violation> {
//! use zvf_model::fetch::contract;
//!
//! for (key, bytes) in contract::objects() {
//!     put(key, &bytes);
//! }
//! let report = contract::verify(&open()).await?;
//! assert!(report.lists);
//! # Ok(()) }
//! ```

use core::{fmt::Debug, ops::Range};
use std::sync::Arc;

use super::{
    AnyArray, CellOptions, CellRef, CellRequest, Fetch, FetchError, FetchProblem, Fetched,
};
use crate::{
    key::Key,
    zarr::{Array, Node},
};

const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"answer": 42}}"#;

/// Numbers in chunks of four, the last of which is absent.
const NUMBERS: &str = r#"{"zarr_format": 3, "node_type": "array", "data_type": "uint8",
    "shape": [10], "fill_value": 7, "codecs": [{"name": "bytes"}],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}"#;

/// One byte string in each chunk: seven bytes, absent, empty, damaged.
const STRINGS: &str = r#"{"zarr_format": 3, "node_type": "array",
    "data_type": "variable_length_bytes", "shape": [4], "fill_value": "",
    "codecs": [{"name": "vlen-bytes"}],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}"#;

/// Two byte strings in one chunk.
const FRAMES: &str = r#"{"zarr_format": 3, "node_type": "array",
    "data_type": "variable_length_bytes", "shape": [2], "fill_value": "",
    "codecs": [{"name": "vlen-bytes"}],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}"#;

/// Five bytes in one chunk, found by the key of the array alone.
const CHILD: &str = r#"{"zarr_format": 3, "node_type": "array", "data_type": "uint8",
    "shape": [5], "fill_value": 0, "codecs": [{"name": "bytes"}],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}"#;

const STRING: &[u8] = b"\x01\0\0\0\x07\0\0\0payload";
const EMPTY: &[u8] = b"\x01\0\0\0\0\0\0\0";
/// Declares seven bytes and has three.
const CUT: &[u8] = b"\x01\0\0\0\x07\0\0\0pay";
const TWO: &[u8] = b"\x02\0\0\0\x01\0\0\0a\x02\0\0\0bc";

/// Returns the objects of the store that [`verify`] reads, by key.
pub fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let objects: [(&str, &[u8]); 15] = [
        ("zarr.json", GROUP.as_bytes()),
        ("frames/zarr.json", FRAMES.as_bytes()),
        ("frames/c/0", TWO),
        ("group/zarr.json", GROUP.as_bytes()),
        ("group/child/zarr.json", CHILD.as_bytes()),
        ("group/child/c/0", b"child"),
        ("group/deep/below/zarr.json", GROUP.as_bytes()),
        ("numbers/zarr.json", NUMBERS.as_bytes()),
        ("numbers/c/0", &[0, 1, 2, 3]),
        ("numbers/c/1", &[4, 5, 6, 7]),
        ("plain/deep/zarr.json", GROUP.as_bytes()),
        ("strings/zarr.json", STRINGS.as_bytes()),
        ("strings/c/0", STRING),
        ("strings/c/2", EMPTY),
        ("strings/c/3", CUT),
    ];
    let owned = objects.map(|(key, bytes)| (key, bytes.to_vec()));
    owned.into()
}

/// Optional abilities of an implementation of [`Fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractReport {
    /// [`Fetch::children`] and [`Fetch::sizes`] list. Stores before 0.9 need that.
    pub lists: bool,
    /// [`Fetch::files`] lists. Validation needs that.
    pub lists_files: bool,
}

/// A difference from the [contract](self).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{request}: expected {expected}, found {found}")]
pub struct Violation {
    /// The request.
    pub request: String,
    /// The result that the contract requires.
    pub expected: String,
    /// The result of the implementation.
    pub found: String,
}

/// Compares an implementation of [`Fetch`] over [`objects`] with the [contract](self).
///
/// # Errors
///
/// The first [`Violation`].
pub async fn verify<F: Fetch>(fetch: &F) -> Result<ContractReport, Violation> {
    nodes(fetch).await?;
    cells(fetch).await?;
    equal("budget() > 0", &true, &(fetch.budget() > 0))?;
    equal("confirm()", &None, &problem_of(&fetch.confirm().await))?;
    Ok(ContractReport {
        lists: listings(fetch).await?,
        lists_files: files(fetch).await?,
    })
}

async fn nodes<F: Fetch>(fetch: &F) -> Result<(), Violation> {
    let keys = ["numbers", "", "plain", "group/none", "numbers"].map(key);
    let request = "nodes([numbers, root, plain, group/none, numbers])";
    let found = fetch
        .nodes(&keys)
        .await
        .map_err(|error| violation(request, &"nodes", &error))?;
    let numbers = Some(parse("numbers", NUMBERS)?);
    let root = Some(parse("", GROUP)?);
    let expected = [numbers.clone(), root, None, None, numbers];
    equal(request, &expected.to_vec(), &found)?;
    let none = fetch
        .nodes(&[])
        .await
        .map_err(|error| violation("nodes([])", &"no node", &error))?;
    equal("nodes([])", &Vec::new(), &none)
}

async fn cells<F: Fetch>(fetch: &F) -> Result<(), Violation> {
    let open = |node: &str, json: &str| {
        let array = match parse(node, json)? {
            Node::Array(array) => array,
            Node::Group(_) => return Err(violation(node, &"an array", &"a group")),
        };
        let array: Arc<Array> = Arc::new(array);
        let opened = fetch
            .array(&key(node), Arc::clone(&array))
            .map_err(|error| violation("array()", &"an array", &error))?;
        equal("node()", &key(node), opened.node())?;
        equal("metadata()", &array, opened.metadata())?;
        Ok(opened)
    };
    let numbers = open("numbers", NUMBERS)?;
    let strings = open("strings", STRINGS)?;
    let frames = open("frames", FRAMES)?;
    let element = |array: &AnyArray, at: u64| CellRef::Element(array.clone(), vec![at]);
    let child = |name: &str| CellRef::Child(key(name));
    let requests: [Request<'_>; 12] = [
        (
            "numbers 1",
            element(&numbers, 1),
            None,
            Ok(Some((&[4, 5, 6, 7], 4))),
        ),
        (
            "numbers 0, part",
            element(&numbers, 0),
            Some(1..3),
            Ok(Some((&[1, 2], 4))),
        ),
        ("numbers 2, absent", element(&numbers, 2), None, Ok(None)),
        (
            "numbers 1, again",
            element(&numbers, 1),
            None,
            Ok(Some((&[4, 5, 6, 7], 4))),
        ),
        (
            "strings 0",
            element(&strings, 0),
            None,
            Ok(Some((b"payload", 7))),
        ),
        (
            "strings 0, part",
            element(&strings, 0),
            Some(3..7),
            Ok(Some((b"load", 7))),
        ),
        ("strings 1, absent", element(&strings, 1), None, Ok(None)),
        (
            "strings 3, damaged",
            element(&strings, 3),
            None,
            Err(FetchProblem::Damaged),
        ),
        (
            "strings 2, empty",
            element(&strings, 2),
            None,
            Ok(Some((b"", 0))),
        ),
        ("frames 0", element(&frames, 0), None, Ok(Some((TWO, 15)))),
        ("child", child("group/child"), None, Ok(Some((b"child", 5)))),
        ("child, absent", child("group/none"), None, Ok(None)),
    ];
    let wanted: Vec<CellRequest> = requests
        .iter()
        .map(|(_, cell, part, _)| CellRequest {
            cell: cell.clone(),
            part: part.clone(),
        })
        .collect();
    for bypasses_cache in [false, true] {
        let options = CellOptions {
            bypasses_cache,
            ..CellOptions::default()
        };
        let found = fetch.cells(&wanted, options).await;
        equal("number of cells", &wanted.len(), &found.len())?;
        for ((name, _, _, expected), found) in requests.iter().zip(&found) {
            let found = match found {
                Ok(Some(Fetched { bytes, size })) => Ok(Some((&**bytes, *size))),
                Ok(None) => Ok(None),
                Err(error) => Err(error.problem),
            };
            equal(&format!("cell {name}"), expected, &found)?;
        }
    }
    let none = fetch.cells(&[], CellOptions::default()).await;
    equal("cells([])", &0, &none.len())
}

/// The name of a request, the cell, the part, and the result that the contract requires.
type Request<'a> = (&'a str, CellRef, Option<Range<u64>>, ExpectedPayload<'a>);

/// A payload with its size, or the category of the failure.
type ExpectedPayload<'a> = Result<Option<(&'a [u8], u64)>, FetchProblem>;

async fn listings<F: Fetch>(fetch: &F) -> Result<bool, Violation> {
    let expected: [(&str, &[&str]); 3] = [
        ("", &["frames", "group", "numbers", "plain", "strings"]),
        ("group", &["child", "deep"]),
        ("group/none", &[]),
    ];
    for (node, expected) in expected {
        let request = format!("children({node:?})");
        match fetch.children(&key(node)).await {
            Ok(found) => equal(&request, &expected.to_vec(), &texts(&found))?,
            Err(error) if error.problem == FetchProblem::Unlistable => return Ok(false),
            Err(error) => return Err(violation(&request, &expected, &error)),
        }
    }
    let keys = ["numbers/c/1", "numbers/c/2", "frames/c/0", "none/c/0"].map(key);
    let sizes = fetch
        .sizes(&keys)
        .await
        .map_err(|error| violation("sizes()", &"sizes", &error))?;
    equal("sizes()", &vec![Some(4), None, Some(15), None], &sizes)?;
    Ok(true)
}

async fn files<F: Fetch>(fetch: &F) -> Result<bool, Violation> {
    for prefix in ["", "group"] {
        let request = format!("files({prefix:?})");
        let mut found = match fetch.files(&key(prefix)).await {
            Ok(found) => found,
            Err(error) if error.problem == FetchProblem::Unlistable => return Ok(false),
            Err(error) => return Err(violation(&request, &"objects", &error)),
        };
        found.sort_unstable();
        let objects = objects().into_iter();
        let mut expected: Vec<(String, u64)> = objects
            .filter(|(key, _)| prefix.is_empty() || key.starts_with("group/"))
            .map(|(key, bytes)| {
                (
                    key.to_owned(),
                    u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                )
            })
            .collect();
        expected.sort_unstable();
        equal(&request, &expected, &found)?;
    }
    Ok(true)
}

/// Returns a key of this module, all of which are valid.
fn key(text: &str) -> Key {
    Key::parse(text).unwrap_or_else(|_| Key::root())
}

fn parse(node: &str, json: &str) -> Result<Node, Violation> {
    let parsed = Node::parse(&key(node), json.as_bytes());
    parsed.map_err(|error| violation(node, &"a node", &error))
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn problem_of(result: &Result<(), FetchError>) -> Option<FetchProblem> {
    result.as_ref().err().map(|error| error.problem)
}

fn equal<T: PartialEq + Debug>(request: &str, expected: &T, found: &T) -> Result<(), Violation> {
    if expected == found {
        return Ok(());
    }
    Err(violation(request, expected, found))
}

fn violation(request: &str, expected: &impl Debug, found: &impl Debug) -> Violation {
    Violation {
        request: request.to_owned(),
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    }
}
