//! Inner loops, each small enough to count its instructions.
//!
//! Everything runs on the calling thread, without a runtime, so that only the work is counted.

use std::{
    hint::black_box,
    pin::pin,
    task::{Context as Waiting, Poll, Waker},
};

use anyhow::{Context, Result, bail};
use zvf::{Bbox, CreateOptions, Dataset, Design, Mode, OpenOptions, Purpose, Query, Store};
use zvf_build::{Output, WritePlan};
use zvf_dense::blosc::{BloscChunk, BloscCodec, BloscFilter, ChunkEncoder, Decoder};
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder, Rows},
    links::{LinkRowsBuilder, LinkWidth, Permutation, RaggedLinks, RowForm},
    manifest::{FragmentRef, ObjectManifest, ObjectManifestBuilder},
};

use crate::{
    data::{Data, Workload},
    random::NamedRandom,
    worker::StoreForm,
};

/// Number of vertices of the queried stores.
const VERTICES: usize = 20_000;

/// A repeatable unit of work.
pub struct Kernel {
    /// Name in the list of counts.
    pub name: &'static str,
    work: Box<dyn FnMut() -> Result<usize>>,
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

impl Kernel {
    fn new(name: &'static str, work: impl FnMut() -> Result<usize> + 'static) -> Self {
        let work = Box::new(work);
        Self { name, work }
    }

    /// Runs the kernel once.
    ///
    /// # Errors
    ///
    /// Any error of the kernel; also an empty result.
    pub fn run(&mut self) -> Result<usize> {
        match (self.work)()? {
            0 => bail!("{} found nothing", self.name),
            found => Ok(found),
        }
    }
}

/// Returns all kernels with their prepared inputs.
///
/// # Errors
///
/// Any error while preparing the inputs.
pub fn kernels() -> Result<Vec<Kernel>> {
    let mut kernels = vec![
        fragments()?,
        boxes()?,
        manifests()?,
        links()?,
        ragged()?,
        unshuffle()?,
        build(),
    ];
    kernels.extend(stores()?);
    Ok(kernels)
}

/// Looks up fragments at random, half of them lists.
fn fragments() -> Result<Kernel> {
    let mut random = NamedRandom::new(1, "fragments");
    let mut builder = FragmentIndexBuilder::default();
    let mut row = 0;
    for at in 0..10_000_u64 {
        let rows = 2 + random.bits() % 7;
        if at % 2 == 0 {
            builder.push_range(row..row + rows)?;
        } else {
            let list: Vec<u64> = (row..row + rows).rev().collect();
            builder.push_list(&list)?;
        }
        row += rows;
    }
    let blob = builder.finish();
    let ids: Vec<u32> = (0..1000).map(|_| random.below(10_000) as u32).collect();
    Ok(Kernel::new("fragment lookup", move || {
        let index = FragmentIndex::parse(black_box(&blob))?;
        let found = ids.iter().filter_map(|id| index.rows(*id));
        let sum = found.map(|rows| match rows {
            Rows::Range(rows) => rows.end - rows.start,
            Rows::List(rows) => rows.iter().fold(0, |sum, row| sum ^ row),
        });
        Ok(sum.fold(0, u64::wrapping_add) as usize)
    }))
}

/// Tests positions against a box.
fn boxes() -> Result<Kernel> {
    let data = Data::new(Workload::Points, VERTICES);
    let [low, high] = data.boxes(0.1)[0];
    let bbox = Bbox::new(&low, &high)?;
    let values: Vec<f32> = data.positions.iter().flatten().copied().collect();
    let mut selected = Vec::with_capacity(VERTICES);
    Ok(Kernel::new("rows of a box", move || {
        selected.clear();
        bbox.select_values(black_box(&values), &mut selected)?;
        Ok(selected.len())
    }))
}

fn manifests() -> Result<Kernel> {
    let mut builder = ObjectManifestBuilder::new(3);
    for at in 0..2000_i64 {
        let chunk = [at / 100, at / 10 % 10, at % 10];
        let fragment = (at * 7) as u32;
        match at % 3 {
            0 => builder.push_single(&chunk, fragment)?,
            1 => builder.push_range(&chunk, fragment..fragment + 5)?,
            _ => builder.push_list(&chunk, &[fragment, fragment + 9, fragment + 2])?,
        };
    }
    let blob = builder.finish();
    Ok(Kernel::new("manifest", move || {
        let manifest = ObjectManifest::parse(black_box(&blob), 3)?;
        let counts = manifest.iter().map(|block| {
            let chunk = block.chunk.iter().sum::<i64>() as usize;
            chunk
                + match block.fragments {
                    FragmentRef::Single(fragment) => fragment as usize,
                    FragmentRef::Range(fragments) => fragments.len(),
                    FragmentRef::List(fragments) => fragments.iter().sum::<u32>() as usize,
                }
        });
        Ok(counts.sum())
    }))
}

fn link_rows() -> Result<LinkRowsBuilder> {
    let mut rows = LinkRowsBuilder::new(LinkWidth::EDGE, RowForm::Permuted);
    for at in 0..10_000_u64 {
        let order = Permutation::from_code(LinkWidth::EDGE, i64::from(at % 2 == 0))?;
        rows.push(order, &[at, at + 1])?;
        if at % 100 == 0 {
            rows.end_group();
        }
    }
    Ok(rows)
}

fn links() -> Result<Kernel> {
    let blob = link_rows()?.finish_rows();
    Ok(Kernel::new("link rows", move || {
        let rows = zvf_format::links::LinkRows::parse(
            black_box(&blob),
            LinkWidth::EDGE,
            RowForm::Permuted,
        )?;
        let ends = rows.iter().flat_map(|row| row.input());
        Ok(ends.fold(0, u64::wrapping_add) as usize)
    }))
}

fn ragged() -> Result<Kernel> {
    let blob = link_rows()?.finish_ragged();
    Ok(Kernel::new("ragged links", move || {
        let links = RaggedLinks::parse(black_box(&blob), LinkWidth::EDGE, RowForm::Permuted)?;
        let rows = links.groups().map(|group| {
            group
                .iter()
                .map(|row| row.code() as usize + 1)
                .sum::<usize>()
        });
        Ok(rows.sum())
    }))
}

/// Reverses the shuffle of a weakly compressed blosc chunk.
fn unshuffle() -> Result<Kernel> {
    let data = Data::new(Workload::Points, VERTICES);
    let bytes: Vec<u8> = data
        .positions
        .iter()
        .flatten()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let encoder =
        ChunkEncoder::new(BloscCodec::Lz4, 4, 1 << 16).with_filters(&[BloscFilter::Shuffle])?;
    let chunk = encoder.encode(&bytes)?;
    let (mut decoder, mut decoded) = (Decoder::default(), vec![0; bytes.len()]);
    Ok(Kernel::new("unshuffle", move || {
        BloscChunk::parse(black_box(&chunk))?.decode(4, &mut decoder, &mut decoded)?;
        Ok(decoded.len())
    }))
}

/// Plans a store and encodes its cells.
fn build() -> Kernel {
    let data = Data::new(Workload::Streamlines, VERTICES);
    let (geometry, design) = (data.geometry(), design(&data));
    Kernel::new("chunks built", move || {
        let plan = WritePlan::new(geometry.clone().build()?, design.clone())?;
        let mut bytes = 0;
        for task in 0..plan.tasks() {
            let sizes = plan.run(task)?.into_iter().map(|output| match output {
                Output::Cell { payload, .. } => payload.len(),
                Output::Node { .. } => 0,
            });
            bytes += sizes.sum::<usize>();
        }
        Ok(bytes)
    })
}

/// Returns queries of open stores in memory.
fn stores() -> Result<Vec<Kernel>> {
    let mut kernels = Vec::new();
    for (kind, form, names) in [
        (
            Workload::Points,
            StoreForm::Plain,
            ["points whole", "points box", ""],
        ),
        (
            Workload::Streamlines,
            StoreForm::Zstd,
            ["streamlines whole", "streamlines box", "streamline"],
        ),
        (
            Workload::Skeletons,
            StoreForm::Zstd,
            ["skeletons whole", "skeletons box", "skeleton"],
        ),
        (
            Workload::Graph,
            StoreForm::Plain,
            ["graph whole", "graph box", ""],
        ),
    ] {
        let data = Data::new(kind, VERTICES);
        let open = stored(&data, form)?;
        let [low, high] = data.boxes(0.01)[0];
        let mode = if kind == Workload::Graph {
            Mode::Clip
        } else {
            Mode::Touch
        };
        let bbox = Query::new().region(Bbox::new(&low, &high)?).mode(mode);
        let one = data
            .hundred_objects()
            .first()
            .map(|id| Query::new().objects([*id]));
        let queries = [Some(Query::new()), Some(bbox), one];
        for (name, query) in names.into_iter().zip(queries) {
            let open = open.clone();
            if let Some(query) = query {
                kernels.push(Kernel::new(name, move || {
                    Ok(now(open.query(&query))?.positions.len())
                }));
            }
        }
        if kind == Workload::Streamlines {
            let store = open.store().clone();
            let options = zvf::ValidateOptions::default();
            kernels.push(Kernel::new("streamlines validated", move || {
                let report = now(zvf::validate(store.clone(), &options))?;
                Ok(1 + report.findings.len())
            }));
        }
    }
    Ok(kernels)
}

/// Returns a design with cells of a fixed size: with other defaults, the loops would count other work.
fn design(data: &Data) -> Design {
    let mut design = data.design();
    design.purpose = match data.kind {
        Workload::Points => Purpose::Scan,
        _ => Purpose::Lookup,
    };
    design
}

/// Opens a store in memory.
fn stored(data: &Data, form: StoreForm) -> Result<Dataset> {
    let store: Store = OpenOptions::default().create("memory:")?;
    let mut design = design(data);
    form.apply(&mut design);
    let plan = WritePlan::new(data.geometry().build()?, design)?;
    // The first query would parse the inventory, which is no part of these loops.
    let options = CreateOptions::default().seal(false);
    now(zvf::create_from_plan(&store, plan, &options))?;
    now(Dataset::open(store))
}

/// Polls a future that never waits.
fn now<T, E: Into<anyhow::Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T> {
    let mut work = pin!(work);
    // Streams yield occasionally for fairness, without waiting.
    for _ in 0..1_000_000 {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Waiting::from_waker(Waker::noop())) {
            return done.map_err(Into::into);
        }
    }
    None.context("a store in memory that waits")
}
