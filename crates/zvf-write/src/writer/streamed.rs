//! Creation of stores from geometry that exceeds memory.

mod batches;
pub mod job;
mod pieces;
pub mod shares;
mod task;

use core::error::Error as StdError;
use std::{
    fs::{File, OpenOptions as FileOptions},
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};
use zvf_model::{column::ColumnValues, fetch::BoxFuture, generation::Generation, scope::Scope};

use bytes::Bytes;
use zvf_build::{
    BuildError, Design, Geometry, LinkNumbering, WritePlan,
    large::{GeometrySurvey, Outline, PartitionResult, Partitioner, PathIndex},
};
use zvf_dataset::{Error, Failure, Location};
use zvf_store::Creation;

use crate::{
    task_runner::scratch_error,
    writer::{
        CreateOptions, NewFolder, WriteReport,
        cell_writer::{CellWriter, Destination, Objects},
        commit_or_delete, copies_nodes,
        encode::{self, Arrays},
        named, root, run,
    },
};

/// A source of batches of geometry: points, and paths that do not continue in another batch, which are
/// read twice, or geometry with links, which is read once.
pub trait GeometrySource: Send {
    /// Returns the next batch of about `vertices` vertices; `None` after the last.
    ///
    /// # Errors
    ///
    /// An error when the geometry cannot be read.
    fn next(
        &mut self,
        vertices: usize,
    ) -> Result<Option<Geometry>, Box<dyn StdError + Send + Sync>>;

    /// Restarts at the first batch.
    ///
    /// # Errors
    ///
    /// An error when the geometry cannot be read.
    fn rewind(&mut self) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Returns objects, groups and their attributes, as geometry without vertices.
    ///
    /// Numeric attributes of the objects of paths may come with the batches instead, one row for
    /// each path, and are then not held in memory. The tables describe no objects in this case.
    ///
    /// # Errors
    ///
    /// An error when the tables do not fit together.
    fn tables(&self) -> Result<Geometry, Box<dyn StdError + Send + Sync>>;

    /// Returns the origin of the vertex numbers in links. The vertices and links of a tree are in
    /// one batch in either case.
    fn link_numbering(&self) -> LinkNumbering {
        LinkNumbering::Batch
    }
}

pub use batches::GeometryBatches;
pub use task::run_part;

/// Default of [`CreateOptions::memory`].
const MEMORY: u64 = 1 << 30;
/// Name of the temporary file with the records of paths.
const PATHS: &str = "paths";
/// Size of the block of records that is encoded at once. Manifests are some twenty times as large.
const RECORDS: u64 = 128 << 10;
/// Estimated number of copies of a part or batch in memory.
const COPIES: u64 = 16;
/// Memory for batches and parts. Columns of more memory are no faster: they leave the caches of the
/// processor, and the system clears them each time.
const WORKING_MEMORY: u64 = 256 << 20;

/// Creates a store of geometry that is never held as a whole. Points and paths are read twice, and
/// parts are kept in temporary files between the passes. Geometry with links is read once and divided
/// by this process; until the end, the reserved folder of the store holds it twice, as for plans of
/// tasks.
///
/// The store equals, byte for byte, the store that [`create`](super::create) writes with the same
/// shapes and shards.
///
/// ```
/// use std::error::Error;
/// use zvf::{Dataset, Design, Geometry, GeometryKind, NumericColumn, Query};
///
/// /// Points on a line, generated on request.
/// struct Line {
///     given: u16,
/// }
///
/// impl zvf::GeometrySource for Line {
///     fn next(
///         &mut self,
///         vertices: usize,
///     ) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
///         let more = (self.given..1000).take(vertices.max(1));
///         let positions: Vec<f32> = more.flat_map(|at| [f32::from(at), 0.0, 0.0]).collect();
///         self.given += u16::try_from(positions.len() / 3)?;
///         let is_over = positions.is_empty();
///         Ok((!is_over).then(|| Geometry::new(NumericColumn::float32(3, positions))))
///     }
///
///     fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
///         self.given = 0;
///         Ok(())
///     }
///
///     fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
///         Ok(Geometry::new(NumericColumn::float32(3, [])))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("line.zv").display().to_string();
/// # let address = address.as_str();
/// let mut design = Design::new(GeometryKind::Points);
/// design.chunk_shape = Some(vec![100.0; 3]);
/// zvf::create_from_source(address, &mut Line { given: 0 }, design, &Default::default()).await?;
/// let line = Dataset::open(address).await?;
/// assert_eq!(line.query(&Query::new()).await?.positions.len(), 1000);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`create`](super::create); an error [from the caller](Error::is_from_caller) when geometry
/// cannot be read; [`BuildError`] for links in a build without the feature `pyramid`.
pub async fn create_from_source(
    location: impl Into<Location>,
    source: &mut dyn GeometrySource,
    design: Design,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    Ok(create_streamed(location.into(), source, design, options).await?)
}

fn create_streamed<'a>(
    location: Location,
    source: &'a mut dyn GeometrySource,
    design: Design,
    options: &'a CreateOptions,
) -> BoxFuture<'a, Result<WriteReport, Failure>> {
    Box::pin(async move {
        if design.kind.is_linked() {
            let name = location.address().map(str::to_owned);
            let folder = NewFolder::at(location.address());
            let store = location.create(&options.open)?;
            let name = name.as_deref();
            let made = shares::create_linked(&store, name, source, design, options);
            return folder.keep_if(Box::pin(made).await);
        }
        let design = named(design, location.address());
        let generation = design.profile.layout().generation;
        let copies = copies_nodes(design.profile, options.node_copy);
        let survey = Survey::of(source, design, options)?;
        let parts = survey.parts(options);
        let parts = match &options.runner {
            // Several parts per process, so that all processes are busy until the end.
            Some(runner) => parts.max(runner.at_once().saturating_mul(4)),
            None => parts,
        };
        let tables = source.tables().map_err(Failure::of_source)?;
        let Survey {
            outline,
            batch,
            vertices,
        } = survey;
        let mut splitter = Partitioner::new(outline, parts);
        let scratch = tempfile::tempdir().map_err(|source| Failure::Scratch {
            path: std::env::temp_dir().display().to_string(),
            source,
        })?;
        // Before the second pass, so that an existing store is an error early.
        let folder = NewFolder::at(location.address());
        let store = location.create(&options.open)?;
        let address = store.to_string();
        let mut creation = store
            .begin_create()
            .await
            .map_err(|source| Failure::Create {
                address: address.clone(),
                source,
            })?;
        if copies {
            creation.write_node_copy();
        }
        if options.seal {
            creation.write_seal();
        }
        let records = scratch.path().join(PATHS);
        let split = split(source, &mut splitter, batch, scratch.path(), Some(&records));
        let made = match split {
            Err(error) => Err(error),
            Ok(()) => {
                let writer = CellWriter::new(&creation, generation);
                let creating = StreamedCreation {
                    address: &address,
                    scratch: scratch.path(),
                    options,
                    creation: &creation,
                    writer: writer.with_progress(options.progress.clone()),
                    vertices,
                };
                let made = creating.write(splitter, tables).await;
                made.map(|(plan, written)| (root(&plan), written))
            }
        };
        folder.keep_if(commit_or_delete(&store, creation, made).await)
    })
}

/// The decisions of the first pass.
struct Survey {
    outline: Outline,
    /// Number of vertices in a batch of the second pass.
    batch: usize,
    vertices: u64,
}

impl Survey {
    /// Reads the source once, rewinds it, and has the caller check the estimate.
    fn of(
        source: &mut dyn GeometrySource,
        design: Design,
        options: &CreateOptions,
    ) -> Result<Self, Failure> {
        let memory = working_memory(options);
        if design.kind.is_linked() {
            return Err(Failure::Build(BuildError::Unsupported {
                kind: design.kind.name(),
                what: "batches in this build of zvf; add the feature `pyramid`, or create the store \
                       from whole geometry",
            }));
        }
        let tables = source.tables().map_err(Failure::of_source)?;
        check_tables(&design, &tables)?;
        let mut survey = GeometrySurvey::new(design, has_tables(&tables))?;
        // The first batch determines the size of a vertex.
        let mut batch = 1 << 16;
        let mut next = source.next(batch).map_err(Failure::of_source)?;
        while let Some(geometry) = next {
            batch = clamp_rows(memory / COPIES / row_size(&geometry) as u64);
            let (added, read) = rayon::join(|| survey.add(&geometry), || source.next(batch));
            added?;
            next = read.map_err(Failure::of_source)?;
        }
        source.rewind().map_err(Failure::of_source)?;
        let vertices = survey.stored_vertices();
        let sample = survey.sample().cloned();
        let outline = survey.outline()?;
        // Before the second pass, which copies all rows to the disk.
        if let (Some(check), Some(sample)) = (&options.check, sample) {
            check(&outline.estimate_sampled(sample, vertices)?).map_err(Failure::Declined)?;
        }
        Ok(Self {
            outline,
            batch,
            vertices,
        })
    }

    /// Returns the number of parts that fit into memory one by one.
    fn parts(&self, options: &CreateOptions) -> usize {
        let bytes = self.vertices.saturating_mul(self.outline.row_size() as u64);
        clamp_rows(
            bytes
                .saturating_mul(COPIES)
                .div_ceil(working_memory(options)),
        )
    }
}

/// Returns an error for tables that parts cannot store.
fn check_tables(design: &Design, tables: &Geometry) -> Result<(), BuildError> {
    if tables.columns(Scope::Fragment).is_empty() {
        Ok(())
    } else {
        Err(BuildError::Unsupported {
            kind: design.kind.name(),
            what: "fragment attributes of geometry that is read in batches",
        })
    }
}

/// Returns whether tables describe objects or groups.
fn has_tables(tables: &Geometry) -> bool {
    tables.objects().is_some()
        || !tables.columns(Scope::Object).is_empty()
        || !tables.groups().is_empty()
}

/// Returns the approximate size of a vertex in memory.
fn row_size(geometry: &Geometry) -> usize {
    let attributes =
        geometry
            .columns(Scope::Vertex)
            .iter()
            .map(|attribute| match &attribute.values {
                ColumnValues::Numeric(numbers) => numbers.row_size(),
                ColumnValues::Dictionary { .. } => 48,
            });
    // The size of the links is spread over the vertices, or over the links if there are more links.
    let links = geometry.links();
    let link_bytes = links.ends.len() * 8 / geometry.vertices().max(links.len()).max(1);
    geometry.positions().row_size() + attributes.sum::<usize>() + link_bytes + 8
}

fn memory(options: &CreateOptions) -> u64 {
    options.memory.unwrap_or(MEMORY).max(1 << 10)
}

/// Returns the memory for batches and parts.
fn working_memory(options: &CreateOptions) -> u64 {
    memory(options).min(WORKING_MEMORY)
}

/// Runs the second pass: appends rows to the files of their parts, and records of paths to the file
/// `records`. Without it, they stay in the partitioner.
fn split(
    source: &mut dyn GeometrySource,
    splitter: &mut Partitioner,
    batch: usize,
    scratch: &Path,
    records: Option<&Path>,
) -> Result<(), Failure> {
    let mut next = source.next(batch).map_err(Failure::of_source)?;
    while let Some(geometry) = next {
        // The next batch is read while this one is split and written.
        let (split, read) = rayon::join(
            || {
                for (part, bytes) in splitter.split(geometry)? {
                    append(&file(scratch, part), &bytes)?;
                }
                Ok::<_, Failure>(())
            },
            || source.next(batch),
        );
        split?;
        next = read.map_err(Failure::of_source)?;
        if let Some(records) = records {
            append(records, &splitter.take_paths())?;
        }
    }
    Ok(())
}

/// A creation from a source.
struct StreamedCreation<'a> {
    address: &'a str,
    scratch: &'a Path,
    options: &'a CreateOptions,
    creation: &'a Creation,
    writer: CellWriter<&'a Creation>,
    vertices: u64,
}

impl StreamedCreation<'_> {
    /// Writes all parts, then the shared nodes and tables.
    async fn write(
        &self,
        splitter: Partitioner,
        tables: Geometry,
    ) -> Result<(WritePlan, WriteReport), Failure> {
        let all = (0..splitter.parts()).map(|part| file(self.scratch, part));
        let pieces: Vec<PathBuf> = all.filter(|path| path.exists()).collect();
        let (outline, chunks) = splitter.settled();
        if let Some(check) = &self.options.check {
            check(&outline.estimate(self.vertices, &chunks)).map_err(Failure::Declined)?;
        }
        let results = match &self.options.runner {
            None => self.here(outline, chunks, &pieces).await?,
            Some(runner) => {
                let json = outline.to_json(&chunks);
                let tasks = task::write_tasks(self.address, self.scratch, &json, &pieces)?;
                let (runner, files) = (Arc::clone(runner), task::files(&tasks));
                run(move || runner.run(&files).map_err(Failure::Source)).await?;
                let (results, written) = task::collect(&tasks, self.creation)?;
                self.writer.count(&written);
                results
            }
        };
        let records = self.scratch.join(PATHS);
        complete(&self.writer, splitter, results, tables, Some(records)).await
    }

    /// Makes the parts one after another, each on all cores.
    async fn here(
        &self,
        outline: Outline,
        chunks: Vec<Vec<i64>>,
        pieces: &[PathBuf],
    ) -> Result<Vec<PartitionResult>, Failure> {
        let mut results = Vec::with_capacity(pieces.len());
        let shared = Shared::new(outline, chunks)?;
        self.writer.expect(pieces.len());
        for path in pieces {
            let own = path.clone();
            let pieces = move || Ok((read(&own)?, Bytes::new()));
            results.push(shared.make(pieces, &self.writer).await?);
            // The pieces of a finished part are not read again.
            std::fs::remove_file(path).map_err(|source| scratch_error(path, source))?;
            self.writer.done(1);
        }
        Ok(results)
    }
}

/// Writes the shared nodes and tables, after all parts. Records of paths are in the file `records`
/// or in the partitioner.
async fn complete<D: Destination>(
    writer: &CellWriter<D>,
    mut splitter: Partitioner,
    results: Vec<PartitionResult>,
    tables: Geometry,
    records: Option<PathBuf>,
) -> Result<(WritePlan, WriteReport), Failure> {
    let records = records.filter(|path| path.exists());
    let prepare = move || {
        let records: Box<dyn Read + Send> = match records {
            Some(path) if splitter.needs_paths(&tables) => {
                splitter = splitter.with_paths(read(&path)?.into());
                Box::new(std::io::empty())
            }
            Some(path) => {
                let file = File::open(&path);
                Box::new(file.map_err(|source| scratch_error(&path, source))?)
            }
            None if splitter.needs_paths(&tables) => Box::new(std::io::empty()),
            None => Box::new(Cursor::new(splitter.take_paths())),
        };
        let (plan, index) = splitter.finish(results, tables)?;
        let outputs = plan.rest()?;
        let arrays = Arrays::of(plan.generation(), &outputs)?;
        let objects = encode::encoded(&arrays, outputs)?;
        let index = index.map(|index| IndexWork {
            index,
            records,
            arrays,
        });
        Ok((plan, objects, index))
    };
    let (plan, objects, mut index) = run(prepare).await?;
    writer.put(objects).await?;
    while let Some(work) = index.take() {
        let (rest, objects) = run(move || work.step()).await?;
        writer.put(objects).await?;
        index = rest;
    }
    let written = WriteReport {
        summary: plan.summary(),
        ..writer.take_report()
    };
    Ok((plan, written))
}

/// The rest of the object index of paths.
struct IndexWork {
    index: PathIndex,
    records: Box<dyn Read + Send>,
    arrays: Arrays,
}

impl IndexWork {
    /// Encodes the objects of the next block of records; returns no work after the last.
    fn step(mut self) -> Result<(Option<Self>, Objects), Failure> {
        let mut block = Vec::new();
        let found = (&mut self.records).take(RECORDS).read_to_end(&mut block);
        found.map_err(|source| scratch_error(Path::new(PATHS), source))?;
        if block.is_empty() {
            let objects = encode::encoded(&self.arrays, self.index.finish()?)?;
            return Ok((None, objects));
        }
        let objects = encode::encoded(&self.arrays, self.index.push(&block)?)?;
        Ok((Some(self), objects))
    }
}

/// The state that all parts share.
struct Shared {
    outline: Arc<Outline>,
    chunks: Arc<Vec<Vec<i64>>>,
    /// Arrays do not depend on their contents: the arrays of an empty store determine the encoding.
    arrays: Arc<Arrays>,
}

impl Shared {
    fn new(outline: Outline, chunks: Vec<Vec<i64>>) -> Result<Self, Failure> {
        Ok(Self {
            arrays: Arc::new(arrays(&outline)?),
            outline: Arc::new(outline),
            chunks: Arc::new(chunks),
        })
    }

    /// Returns the generation of the store.
    fn generation(&self) -> Generation {
        self.arrays.generation()
    }

    /// Makes a part from the pieces and links that `read` returns. Making a part again writes equal
    /// bytes.
    async fn make<D: Destination>(
        &self,
        read: impl FnOnce() -> Result<(Bytes, Bytes), Failure> + Send + 'static,
        writer: &CellWriter<D>,
    ) -> Result<PartitionResult, Failure> {
        let (of, by_number) = (Arc::clone(&self.outline), Arc::clone(&self.chunks));
        let decode = move || {
            let (pieces, links) = read()?;
            Ok(of.part(&pieces, &links, &by_number)?)
        };
        let part = run(decode).await?;
        let part = Arc::new(part);
        let (of, to) = (Arc::clone(&part), Arc::clone(&self.arrays));
        let make = move |task| encode::encoded(&to, of.run(task)?);
        let tasks = writer.run_tasks(Vec::new(), part.tasks(), make, || ());
        tasks.await?;
        let part = Arc::into_inner(part).ok_or(Failure::Interrupted)?;
        Ok(part.into_result())
    }
}

/// Returns the arrays that cells are encoded for.
fn arrays(outline: &Outline) -> Result<Arrays, Failure> {
    Arrays::of(outline.generation(), &outline.arrays()?)
}

fn file(folder: &Path, part: usize) -> PathBuf {
    folder.join(part.to_string())
}

/// Reads the pieces of a part.
fn read(path: &Path) -> Result<Bytes, Failure> {
    let bytes = std::fs::read(path).map_err(|source| scratch_error(path, source))?;
    Ok(bytes.into())
}

fn append(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file: File = FileOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| scratch_error(path, source))?;
    file.write_all(bytes)
        .map_err(|source| scratch_error(path, source))
}

/// Clamps a number of rows.
fn clamp_rows(count: u64) -> usize {
    usize::try_from(count.clamp(1, 1 << 24)).unwrap_or(1)
}
