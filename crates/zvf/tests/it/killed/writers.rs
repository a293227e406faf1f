//! Several processes that append to one store concurrently.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use zvf::{CreateOptions, Dataset, Editor};
use zvf_build::{
    ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds,
};
use zvf_format::numeric::Kind;
use zvf_store::CommitError;

use super::{child, place::Place};
use crate::{
    block_on,
    written::{content::Content, random::attribute},
};

/// Vertices of an appended object.
const LENGTH: u64 = 3;
/// Objects of one append.
const OBJECTS: u64 = 2;
/// Extent of a chunk.
const CHUNK: f64 = 10.0;

/// Parameters of concurrent writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriterSetup {
    pub(crate) writers: u64,
    /// Appends of each writer.
    pub(crate) appends: u64,
    /// All write to the same chunks instead of each to its own.
    pub(crate) overlapping: bool,
    /// Objects are appended with ids.
    pub(crate) with_ids: bool,
    /// Number of retries of a writer.
    pub(crate) retries: usize,
}

/// Outcome of all appends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) committed: u64,
    pub(crate) conflicts: u64,
}

impl WriterSetup {
    fn word(self, writer: u64, go: &str) -> String {
        let Self {
            writers,
            appends,
            overlapping,
            with_ids,
            retries,
        } = self;
        format!("{writer} {writers} {appends} {overlapping} {with_ids} {retries} {go}")
    }

    fn of_word(word: &str) -> (Self, u64, String) {
        let parts: Vec<&str> = word.splitn(7, ' ').collect();
        let number = |at: usize| parts[at].parse().unwrap();
        let flag = |at: usize| parts[at] == "true";
        let setup = Self {
            writers: number(1),
            appends: number(2),
            overlapping: flag(3),
            with_ids: flag(4),
            retries: parts[5].parse().unwrap(),
        };
        (setup, number(0), parts[6].to_owned())
    }

    /// Returns the geometry that a writer appends, and the tags of each object. Each object
    /// intersects two chunks along the first axis.
    fn addition(self, writer: u64, append: u64) -> (GeometryBuilder, Vec<Vec<u64>>) {
        let first = if self.overlapping {
            0.0
        } else {
            2.0 * CHUNK * float(writer)
        };
        let mut objects = Vec::new();
        let mut places: Vec<f64> = Vec::new();
        for object in 0..OBJECTS {
            let tag = 1_000_000 * (writer + 1) + 1_000 * append + 10 * object;
            objects.push((tag..tag + LENGTH).collect());
            for step in 0..LENGTH {
                let along = first + CHUNK * 2.0 * (float(step) + 0.5) / float(LENGTH);
                places.extend([along, 0.5 + float(append % 9)]);
            }
        }
        let mut geometry = paths(&places, &objects);
        if self.with_ids {
            geometry.owners.number_paths(id(writer, append, 0));
        }
        (geometry, objects)
    }
}

fn id(writer: u64, append: u64, object: u64) -> i64 {
    i64::try_from(1_000_000 * (writer + 1) + 1_000 * append + object).unwrap()
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

fn paths(places: &[f64], objects: &[Vec<u64>]) -> GeometryBuilder {
    let mut geometry = Geometry::builder(NumericColumn::float64(2, places.iter().copied()));
    let ends = objects.iter().scan(0, |end, tags| {
        *end += tags.len() as u64;
        Some(*end)
    });
    geometry = geometry.paths([0].into_iter().chain(ends).collect(), None);
    let mut tags = NumericColumn::new(Kind::UInt64, 1);
    tags.bytes = objects
        .iter()
        .flatten()
        .flat_map(|tag| tag.to_le_bytes())
        .collect();
    geometry
        .vertex
        .push(attribute("tag", ColumnValues::Numeric(tags)));
    geometry
}

/// Creates a store of one object in the chunks that all writers share.
pub(super) async fn begin(address: &str) {
    let geometry = paths(&[1.0, 1.0, 12.0, 1.0], &[vec![1, 2]]);
    let mut design = Design::new(GeometryKind::Polylines);
    design.chunk_shape = Some(vec![CHUNK, CHUNK]);
    design.bounds = Some((vec![0.0, 0.0], vec![400.0, CHUNK]));
    zvf::create(
        address,
        geometry.build().unwrap(),
        design,
        &CreateOptions::default(),
    )
    .await
    .unwrap();
}

/// Returns objects without ids in the shared chunks.
pub(super) fn of(writer: u64) -> GeometryBuilder {
    SHARED.addition(writer, 0).0
}

/// Returns the tags of these objects.
pub(super) fn tags(writer: u64) -> Vec<Vec<u64>> {
    SHARED.addition(writer, 0).1
}

const SHARED: WriterSetup = WriterSetup {
    writers: 2,
    appends: 1,
    overlapping: true,
    with_ids: false,
    retries: 0,
};

/// Runs several writer processes concurrently and checks the resulting store.
pub(crate) fn run(setup: WriterSetup, place: &Place) -> Outcome {
    let address = place.address();
    block_on(begin(&address));
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let writers: Vec<_> = (0..setup.writers)
        .map(|writer| {
            let job = format!("write {}", setup.word(writer, go.to_str().unwrap()));
            let mut command = child::command(&job, &address);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    // Processes take longer to start than to append.
    while fs::read_dir(folder.path()).unwrap().count() < writers.len() {
        thread::sleep(Duration::from_millis(1));
    }
    fs::write(&go, "").unwrap();
    let mut committed: BTreeMap<i64, Vec<u64>> = BTreeMap::from([(0, vec![1, 2])]);
    let mut numbers = BTreeSet::new();
    let mut outcome = Outcome::default();
    for writer in writers {
        for line in child::printed_lines(&writer.wait_with_output().unwrap()) {
            let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let [writer, append, transaction, ids @ ..] = words.as_slice() else {
                panic!("{line}")
            };
            if *transaction == 0 {
                outcome.conflicts += 1;
                continue;
            }
            outcome.committed += 1;
            assert!(
                numbers.insert(*transaction),
                "transaction {transaction} is there twice"
            );
            let (_, objects) = setup.addition(*writer, *append);
            assert_eq!(ids.len(), objects.len());
            for (at, (found, tags)) in ids.iter().zip(objects).enumerate() {
                let found = i64::try_from(*found).unwrap();
                assert!(!setup.with_ids || found == id(*writer, *append, at as u64));
                let before = committed.insert(found, tags);
                assert_eq!(before, None, "object {found} is there twice");
            }
        }
    }
    assert!(
        numbers.iter().copied().eq(1..=outcome.committed),
        "{numbers:?}"
    );
    assert_eq!(
        outcome.committed + outcome.conflicts,
        setup.writers * setup.appends
    );
    block_on(check(&address, &committed));
    outcome
}

/// Asserts that each of these objects is stored once, and no other.
pub(super) async fn check(address: &str, committed: &BTreeMap<i64, Vec<u64>>) {
    let dataset = Dataset::open(address).await.unwrap();
    let content = Content::read(&dataset).await;
    assert_eq!(&content.paths, committed);
    let tags: BTreeSet<u64> = committed.values().flatten().copied().collect();
    assert!(content.vertices.keys().eq(&tags));
    assert!(content.objects.keys().eq(committed.keys()));
    let info = dataset.info().await.unwrap();
    let level = &info.levels[0];
    assert_eq!(level.vertices, Some(tags.len() as u64));
    assert_eq!(level.objects, Some(committed.len() as u64));
    assert_eq!(info.notes, Vec::<String>::new());
}

/// Runs the appends of one process.
pub(super) fn write(job: &str, address: &str) {
    let (setup, writer, go) = WriterSetup::of_word(job);
    let go = Path::new(&go);
    fs::write(go.with_file_name(writer.to_string()), "").unwrap();
    while !go.exists() {
        thread::sleep(Duration::from_micros(200));
    }
    block_on(async {
        let editor = Editor::open(address).await.unwrap().retries(setup.retries);
        for append in 0..setup.appends {
            let (geometry, _) = setup.addition(writer, append);
            let result = match editor
                .append(&geometry.build().unwrap(), OutOfBounds::Reject)
                .await
            {
                Ok(changed) => {
                    let ids = changed.objects.iter().map(|id| format!(" {id}"));
                    format!("{}{}", changed.transaction, ids.collect::<String>())
                }
                Err(ref error) if let Some(CommitError::Conflict { names }) = error.cause() => {
                    assert!(!names.is_empty());
                    "0".to_owned()
                }
                Err(error) => panic!("writer {writer}, append {append}: {error:?}"),
            };
            child::print_line(&format!("{writer} {append} {result}"));
        }
    });
}

/// Runs eight processes with five appends each.
fn eight(overlapping: bool, with_ids: bool, retries: usize) -> Outcome {
    let setup = WriterSetup {
        writers: 8,
        appends: 5,
        overlapping,
        with_ids,
        retries,
    };
    run(setup, &Place::folder())
}

/// Enough retries that every writer succeeds.
pub(crate) const MANY: usize = 10_000;

#[test]
fn eight_writers_append_to_separate_chunks_with_ids() {
    assert_eq!(eight(false, true, 0).conflicts, 0);
}

#[test]
fn eight_writers_append_to_separate_chunks_without_ids() {
    assert_eq!(eight(false, false, MANY).conflicts, 0);
}

#[test]
fn eight_writers_append_to_the_same_chunks_with_ids() {
    assert_eq!(eight(true, true, MANY).conflicts, 0);
}

#[test]
fn eight_writers_append_to_the_same_chunks_without_ids() {
    assert_eq!(eight(true, false, MANY).conflicts, 0);
}

#[test]
fn eight_writers_without_retries_conflict_and_lose_nothing() {
    let outcome = eight(true, false, 0);
    assert!(
        outcome.committed > 0 && outcome.conflicts > 0,
        "{outcome:?}"
    );
}
