//! Writes seed inputs for the fuzz targets: `fuzz_corpus FOLDER`.
//!
//! Every small blob of `testdata/` is passed to every walk: files of the golden archives, whole and
//! split into the items of their frame, segments of their paths, and bytes recorded as hex. Most
//! walks take the parameters of a decoder from the front of their bytes, so each blob is tried with
//! a few prefixes. Inputs that a walk accepts become seeds of its target.

use std::{collections::BTreeSet, error::Error, fs, ops::Range, path::Path};

use serde_json::{Map, Value};
use zvf_format::{tetration::Superblock, vlen::VlenFrame};
use zvf_testkit::{
    golden::{self, Golden},
    walk,
};

const MAX_SEED_BYTES: usize = 4096;
const MAX_SEEDS: usize = 300;
const ARCHIVES: [&str; 6] = ["zvf-09", "zvf-08", "zvf-07", "zvf-06", "tet", "b2nd"];

/// Link widths, plain and (from 0x80) permuted, which also serve as numbers of axes and numeric
/// kinds; then width and axes, or kind and columns.
const PREFIXES: [&[u8]; 11] = [
    &[],
    &[1],
    &[2],
    &[3],
    &[4],
    &[0x82],
    &[0x83],
    &[2, 3],
    &[3, 3],
    // Rows of three float32, and uint8 codes of 255 categories.
    &[10, 3],
    &[5, 255, 0x80],
];

/// Targets beyond the codecs, and the walks that accept their seeds.
const BEYOND: [(&str, &str); 3] = [
    ("dense_tet", "tet_layout"),
    ("dense_b2nd", "b2nd_frame"),
    ("dense_blosc", "b2nd_frame"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("fuzz_corpus FOLDER")?;
    let mut blobs = Blobs::default();
    for archive in ARCHIVES.map(Golden::open) {
        blobs.add_archive(&archive);
    }
    for file in fs::read_dir(golden::testdata().join("codec"))? {
        blobs.add_recorded(&serde_json::from_slice(&fs::read(file?.path())?)?);
    }
    let beyond = BEYOND.iter().filter_map(|(name, like)| {
        let walk = walk::ALL.iter().find(|(name, _)| name == like)?;
        Some((*name, walk.1))
    });
    for (name, walk) in walk::ALL.iter().copied().chain(beyond) {
        let seeds = blobs.accepted_by(walk);
        if seeds.is_empty() {
            return Err(format!("no blob of testdata is a seed of {name}").into());
        }
        let target = Path::new(&folder).join(name);
        fs::create_dir_all(&target)?;
        // Sampled over the sorted seeds, so that the first bytes vary.
        let step = seeds.len().div_ceil(MAX_SEEDS);
        let chosen = seeds.iter().step_by(step);
        #[expect(clippy::print_stdout, reason = "a target short of seeds is to be seen")]
        {
            println!("seeds of {name}: {} of {}", chosen.len(), seeds.len());
        }
        for (number, seed) in chosen.enumerate() {
            fs::write(target.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

/// The distinct small blobs of `testdata/`.
#[derive(Default)]
struct Blobs(BTreeSet<Vec<u8>>);

impl Blobs {
    fn add(&mut self, blob: &[u8]) {
        if blob.len() <= MAX_SEED_BYTES && !self.0.contains(blob) {
            self.0.insert(blob.to_vec());
        }
    }

    fn add_archive(&mut self, archive: &Golden) {
        for (path, bytes) in archive.files() {
            for segment in path.split('/') {
                self.add(segment.as_bytes());
            }
            self.add(bytes);
            self.add_regions(bytes);
            let items = VlenFrame::parse(bytes).into_iter().flatten();
            items.for_each(|item| self.add(item));
            if path.ends_with("expected.json") {
                self.add_recorded(&archive.json(path));
            }
        }
    }

    /// Adds the regions of a Tetration file, the directory after its number of datasets.
    fn add_regions(&mut self, file: &[u8]) {
        let Ok(superblock) = Superblock::parse(file) else {
            return;
        };
        let region = |span: Range<u64>| {
            let [start, end] = [span.start, span.end].map(|at| usize::try_from(at).ok());
            file.get(start?..end?)
        };
        if let Some(directory) = region(superblock.directory_span()) {
            let datasets = superblock.datasets().to_le_bytes();
            self.add(&[&datasets, directory].concat());
        }
        if let Some(index) = region(superblock.index_span()) {
            self.add(index);
        }
    }

    /// Adds all bytes that the JSON contains as hex.
    fn add_recorded(&mut self, json: &Value) {
        match json {
            Value::Array(items) => items.iter().for_each(|item| self.add_recorded(item)),
            Value::Object(fields) => {
                fields.values().for_each(|field| self.add_recorded(field));
                self.add_open_rows(fields);
            }
            text => self.add(&spelled(text).unwrap_or_default()),
        }
    }

    /// Adds the length of the offsets of open rows, the offsets, and their data.
    fn add_open_rows(&mut self, blobs: &Map<String, Value>) {
        for (path, offsets) in blobs {
            let Some(node) = path.strip_suffix("/offsets") else {
                continue;
            };
            let data = blobs.get(&format!("{node}/data"));
            let (offsets, data) = (spelled(offsets), data.and_then(spelled));
            if let (Some(offsets), Some(data)) = (offsets, data)
                && let Ok(len) = u8::try_from(offsets.len())
            {
                self.add(&[&[len], offsets.as_slice(), data.as_slice()].concat());
            }
        }
    }

    fn accepted_by(&self, walk: walk::Walk) -> BTreeSet<Vec<u8>> {
        let offers = PREFIXES.iter().flat_map(|prefix| {
            let blobs = self.0.iter();
            blobs.map(move |blob| [prefix, blob.as_slice()].concat())
        });
        let short = offers.filter(|offer| offer.len() <= MAX_SEED_BYTES);
        short.filter(|offer| walk(offer).is_some()).collect()
    }
}

/// Decodes text as hex.
fn spelled(json: &Value) -> Option<Vec<u8>> {
    let text = json.as_str()?;
    let hex = text.len().is_multiple_of(2) && text.chars().all(|c| c.is_ascii_hexdigit());
    hex.then(|| golden::unhex(text))
}
