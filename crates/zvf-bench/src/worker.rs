//! Measurements in this process: one kind of geometry, written in one form.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tokio::runtime::Runtime;
use zvf::{
    AutoLevels, Bbox, CellChecksums, CellCompression, CreateOptions, Dataset, Design, Geometry,
    MethodKind, Mode, OpenOptions, Predicate, PyramidLevels, PyramidOptions, Query, QueryResult,
    ShardingPolicy,
};
use zvf_codecs::{ChunkCodecs, DecodedSize};
use zvf_model::{key::Key, zarr::Node};

use crate::{
    data::{BoxCorners, Data, SHARES, Workload},
    measure::{MemoryUse, Sample, median, repeated, timed},
};

/// Form of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreForm {
    /// Uncompressed, with checksums.
    Plain,
    /// Uncompressed and without checksums, so that parts of cells can be read.
    Bare,
    /// zstd at level 1.
    Zstd,
    /// zstd at level 1, in shards.
    Sharded,
    /// The codec for the type of each array.
    Auto,
}

impl StoreForm {
    pub(crate) const ALL: [Self; 5] = [
        Self::Plain,
        Self::Bare,
        Self::Zstd,
        Self::Sharded,
        Self::Auto,
    ];
    /// The forms whose costs in a bucket are recorded.
    pub(crate) const IN_BUCKETS: [Self; 4] = [Self::Plain, Self::Bare, Self::Zstd, Self::Sharded];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Bare => "bare",
            Self::Zstd => "zstd",
            Self::Sharded => "sharded",
            Self::Auto => "auto",
        }
    }

    pub(crate) fn is_sealed(self) -> bool {
        self != Self::Bare
    }

    /// Returns whether rows of a cell are read without the rest of it.
    pub(crate) fn reads_rows(self) -> bool {
        matches!(self, Self::Plain | Self::Bare)
    }

    pub(crate) fn apply(self, design: &mut Design) {
        if self == Self::Bare {
            design.checksums = CellChecksums::Off;
        }
        design.compression = match self {
            Self::Plain | Self::Bare => CellCompression::None,
            Self::Zstd | Self::Sharded => CellCompression::Zstd(1),
            Self::Auto => CellCompression::Auto,
        };
        design.sharding = match self {
            Self::Plain | Self::Bare | Self::Zstd | Self::Auto => ShardingPolicy::None,
            Self::Sharded => ShardingPolicy::Auto,
        };
    }
}

impl FromStr for StoreForm {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        let Some(form) = found else {
            bail!("no form {name}")
        };
        Ok(form)
    }
}

/// Returns all steps of a kind, in the required order.
pub(crate) fn steps(kind: Workload, form: StoreForm) -> Vec<String> {
    let mut steps = vec!["write", "open", "whole", "stream"];
    // This step decodes whole files, but cells of shards are parts of files.
    if form != StoreForm::Sharded {
        steps.push("floor");
    }
    steps.extend(match kind {
        Workload::Points => ["filter"].as_slice(),
        Workload::Streamlines | Workload::Skeletons => &[
            "one",
            "one, nothing kept",
            "hundred",
            "hundred, nothing kept",
        ],
        Workload::Mesh | Workload::Graph => &[],
    });
    let boxes = SHARES.iter().map(|(name, _)| format!("box {name}"));
    let steps = steps
        .into_iter()
        .map(str::to_owned)
        .chain(boxes)
        .chain([format!("box 0.1{UNCACHED}")]);
    let last = ["validate", "pyramid"].map(str::to_owned);
    steps.chain(last).collect()
}

/// Suffix of the name of a step that runs without a cell cache.
const UNCACHED: &str = ", nothing kept";

/// A filter that selects about 10 % of the points.
pub(crate) const FILTER: &str = "vertex.intensity > 3000";

/// Measures stores of one data set.
pub(crate) struct Worker {
    pub(crate) data: Data,
    form: StoreForm,
    folder: PathBuf,
    runtime: Runtime,
    open: Option<Dataset>,
    hundred: Vec<i64>,
    next: usize,
}

impl Worker {
    pub(crate) fn new(data: Data, form: StoreForm, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let name = format!(
            "{}-{}-{}.zv",
            data.kind.name(),
            data.positions.len(),
            form.name()
        );
        Ok(Self {
            hundred: data.hundred_objects(),
            data,
            form,
            folder: folder.join(name),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?,
            open: None,
            next: 0,
        })
    }

    /// Runs a step, repeatedly if it is short.
    pub(crate) fn step(&mut self, step: &str) -> Result<Sample> {
        if let Some(step) = step.strip_suffix(UNCACHED) {
            let address = self.address()?;
            let bare = self.opened(&address, OpenOptions::default().cache(0))?;
            let open = self.open.replace(bare);
            let sample = self.step(step);
            self.open = open;
            return sample;
        }
        if let Some(share) = step.strip_prefix("box ") {
            return self.boxes(share);
        }
        match step {
            "write" => self.write(),
            "pyramid" => self.pyramid(),
            "open" => {
                let address = self.address()?;
                self.repeat(|worker| {
                    let (took, _) = timed(|| worker.opened(&address, OpenOptions::default()))?;
                    Ok((took, 0))
                })
            }
            "whole" => {
                let address = self.address()?;
                self.repeat(|worker| {
                    let (took, result) = timed(|| {
                        let open = worker.opened(&address, OpenOptions::default())?;
                        worker.result(&open, &Query::new())
                    })?;
                    Ok((took, result.positions.len()))
                })
            }
            "stream" => self.stream(),
            "floor" => self.floor(),
            "filter" => self.query(&Query::new().filter(Predicate::parse(FILTER)?)),
            "one" => {
                let open = self.dataset()?;
                ensure!(!self.hundred.is_empty(), "this kind has no objects");
                self.repeat(|worker| {
                    worker.next += 1;
                    let id = worker.hundred[worker.next % worker.hundred.len()];
                    let query = Query::new().objects([id]);
                    let (took, result) = timed(|| worker.result(&open, &query))?;
                    Ok((took, result.positions.len()))
                })
            }
            "hundred" => self.query(&Query::new().objects(self.hundred.clone())),
            "validate" => self.validate(),
            unknown => bail!("no step {unknown}"),
        }
    }

    fn repeat(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<(f64, usize)>,
    ) -> Result<Sample> {
        let memory = MemoryUse::watch();
        let (seconds, found) = repeated(|| work(self))?;
        Ok(Sample {
            seconds,
            peak: memory.peak(),
            found,
        })
    }

    /// Reads the whole level in batches, which are dropped.
    fn stream(&mut self) -> Result<Sample> {
        let address = self.address()?;
        self.repeat(|worker| {
            let mut found = 0;
            let (took, ()) = timed(|| {
                let open = worker.opened(&address, OpenOptions::default())?;
                let query = Query::new();
                let batches = open.batches(&query, |batch| {
                    found += batch.positions.len();
                    ControlFlow::Continue(())
                });
                worker.runtime.block_on(batches)?;
                Ok(())
            })?;
            Ok((took, found))
        })
    }

    /// Runs a query on the open dataset.
    fn query(&mut self, query: &Query) -> Result<Sample> {
        let open = self.dataset()?;
        self.repeat(|worker| {
            let (took, result) = timed(|| worker.result(&open, query))?;
            Ok((took, result.positions.len()))
        })
    }

    /// Runs the boxes of a share. Each counts the same, so their median is a sample.
    fn boxes(&mut self, share: &str) -> Result<Sample> {
        let found = SHARES.iter().find(|(name, _)| *name == share);
        let (_, share) = found.with_context(|| format!("no boxes of {share}"))?;
        let boxes = self.data.boxes(*share);
        let queries = boxes
            .iter()
            .map(|corners| self.box_query(corners))
            .collect::<Result<Vec<_>>>()?;
        let open = self.dataset()?;
        self.repeat(|worker| {
            let (mut seconds, mut vertices) = (Vec::new(), 0);
            for query in &queries {
                let (took, result) = timed(|| worker.result(&open, query))?;
                seconds.push(took);
                vertices += result.positions.len();
            }
            Ok((median(&seconds), vertices))
        })
    }

    /// Returns a query of whole paths, or of links with all ends inside, which other programs
    /// support too.
    fn box_query(&self, [low, high]: &BoxCorners) -> Result<Query> {
        let mode = match self.data.kind {
            Workload::Points | Workload::Streamlines => Mode::Touch,
            _ => Mode::Within,
        };
        let query = Query::new().region(Bbox::new(low, high)?).mode(mode);
        Ok(match self.data.kind {
            Workload::Streamlines => query,
            _ => query.owners(false),
        })
    }

    fn write(&mut self) -> Result<Sample> {
        self.open = None;
        let mut design = self.data.design();
        self.form.apply(&mut design);
        let memory = MemoryUse::watch();
        let geometry = self.data.geometry().build()?;
        let (took, ()) = self.create(geometry, design)?;
        Ok(Sample {
            seconds: vec![took],
            peak: memory.peak(),
            found: self.data.positions.len(),
        })
    }

    fn create(&self, geometry: Geometry, design: Design) -> Result<(f64, ())> {
        self.move_output_aside()?;
        let address = self.folder.to_str().context("a path that is not text")?;
        let options = CreateOptions::default().seal(self.form.is_sealed());
        let create = zvf::create(address, geometry, design, &options);
        timed(|| {
            self.runtime.block_on(create)?;
            Ok(())
        })
    }

    /// Moves earlier output aside. ext4 searches for the inode of a new file among those deleted in
    /// the last minutes, and writing a store takes three times as long after as many files were
    /// deleted.
    fn move_output_aside(&self) -> Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let places = (0..).map(|at| self.folder.with_extension(format!("{at}.old")));
        let mut free = places.skip_while(|place| place.exists());
        fs::rename(&self.folder, free.next().context("no place is free")?)?;
        Ok(())
    }

    fn pyramid(&mut self) -> Result<Sample> {
        if self.folder.join("1").exists() {
            self.write()?;
        }
        let address = self.address()?;
        let mut options = PyramidOptions::default();
        options.overwrite = true;
        options.levels = PyramidLevels::Auto(like_the_reference(&self.data));
        let memory = MemoryUse::watch();
        let pyramid = zvf::build_pyramid(&address, &options);
        let (took, made) = timed(|| Ok(self.runtime.block_on(pyramid)?))?;
        self.open = None;
        Ok(Sample {
            seconds: vec![took],
            peak: memory.peak(),
            found: made
                .levels
                .iter()
                .map(|level| level.vertices as usize)
                .sum(),
        })
    }

    fn validate(&mut self) -> Result<Sample> {
        let address = self.address()?;
        let options = zvf::ValidateOptions::default().depth(zvf::Depth::Consistency);
        self.repeat(|worker| {
            let validate = zvf::validate(&address, &options);
            let (took, report) = timed(|| Ok(worker.runtime.block_on(validate)?))?;
            if let Some(finding) = report.findings.first() {
                bail!("{address}: {finding:?}");
            }
            Ok((took, 0))
        })
    }

    /// Reads all files of level 0 and decodes them on all cores, and does nothing else.
    fn floor(&mut self) -> Result<Sample> {
        self.address()?;
        let mut files = Vec::new();
        walk(&self.folder.join("0"), None, &mut files)?;
        self.repeat(|_| {
            let read = || files.par_iter().map(StoredFile::decoded).collect();
            let (took, cells) = timed::<Vec<Bytes>>(read)?;
            Ok((took, cells.iter().map(Bytes::len).sum()))
        })
    }

    /// Returns the address of the store, which is written if it does not exist.
    fn address(&mut self) -> Result<String> {
        if !self.folder.exists() {
            self.write()?;
        }
        let address = self.folder.to_str();
        Ok(address.context("a path that is not text")?.to_owned())
    }

    fn dataset(&mut self) -> Result<Dataset> {
        let address = self.address()?;
        if self.open.is_none() {
            self.open = Some(self.opened(&address, OpenOptions::default())?);
        }
        self.open.clone().context("a store that does not open")
    }

    fn opened(&self, address: &str, options: OpenOptions) -> Result<Dataset> {
        // As much memory as reading the largest store takes.
        let options = options.budget(16 << 30);
        Ok(self
            .runtime
            .block_on(Dataset::open_with(address, &options))?)
    }

    fn result(&self, open: &Dataset, query: &Query) -> Result<QueryResult> {
        Ok(self.runtime.block_on(open.query(query))?)
    }

    /// Returns the size of the store on disk in bytes.
    pub(crate) fn size(&mut self) -> Result<u64> {
        self.address()?;
        let mut files = Vec::new();
        walk(&self.folder, None, &mut files)?;
        let sizes = files.iter().map(|file| Ok(fs::metadata(&file.path)?.len()));
        sizes.sum()
    }
}

/// Returns two levels whose bins have the size of the reference's: two and four times that of its
/// stored bins.
fn like_the_reference(data: &Data) -> AutoLevels {
    let along = match data.kind {
        Workload::Mesh => 10.0,
        _ if data.positions.len() < 3_000_000 => 8.0,
        Workload::Streamlines => 12.0,
        _ => 16.0,
    };
    let mut levels = AutoLevels::default();
    levels.method = Some(MethodKind::Bins);
    levels.levels = Some(2);
    levels.cell = Some(vec![data.side / along; 3]);
    levels.factors = vec![2.0];
    levels.chunk_scale = Some(2);
    levels
}

/// A file of a store.
struct StoredFile {
    path: PathBuf,
    /// The codecs of its array; `None` for metadata.
    codecs: Option<ChunkCodecs>,
}

impl StoredFile {
    /// Reads the file and decodes it as a cell.
    fn decoded(&self) -> Result<Bytes> {
        let bytes = Bytes::from(fs::read(&self.path)?);
        match &self.codecs {
            Some(codecs) => Ok(codecs.decode(bytes, DecodedSize::AtMost(1 << 32))?),
            None => Ok(bytes),
        }
    }
}

/// Collects all files below a folder of the array with these codecs.
fn walk(folder: &Path, codecs: Option<&ChunkCodecs>, files: &mut Vec<StoredFile>) -> Result<()> {
    let metadata = folder.join("zarr.json");
    let mut codecs = codecs.cloned();
    if let Ok(json) = fs::read(&metadata) {
        let node = Node::parse(&Key::parse("zarr.json")?, &json)?;
        // Cells of a shard are parts of a file.
        let array = node
            .as_array()
            .filter(|array| array.codecs.sharding().is_none());
        codecs = array
            .map(|array| ChunkCodecs::new(&array.codecs))
            .transpose()?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            walk(&path, codecs.as_ref(), files)?;
        } else {
            let codecs = codecs.clone().filter(|_| path != metadata);
            files.push(StoredFile { path, codecs });
        }
    }
    Ok(())
}
