//! Speed of the codecs.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, Throughput};
use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder, FragmentIndexLimit, Rows};
use zvf_testkit::stores::Random;

const FRAGMENTS: [u32; 3] = [100, 10_000, 1_000_000];
const KINDS: [(&str, IsRange); 3] = [
    ("ranges", |_| true),
    ("mixed", |random| random & 1 == 0),
    ("lists", |_| false),
];
/// Lookups cycle through this many random ids, a power of two.
const LOOKUPS: usize = 1 << 16;

type IsRange = fn(u64) -> bool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .configure_from_args();
    for (kind, is_range) in KINDS {
        for fragments in FRAGMENTS {
            let case = Case::new(kind, fragments, is_range)?;
            case.bench(&mut criterion)?;
        }
    }
    criterion.final_summary();
    Ok(())
}

/// An index and the order of its lookups.
struct Case {
    name: String,
    blob: Vec<u8>,
    ids: Vec<u32>,
}

impl Case {
    fn new(kind: &str, fragments: u32, is_range: IsRange) -> Result<Self, FragmentIndexLimit> {
        let mut random = Random::new(u64::from(fragments));
        let mut builder = FragmentIndexBuilder::default();
        let mut row = 0;
        for _ in 0..fragments {
            let rows = 2 + random.below(7) as u64;
            if is_range(random.any()) {
                builder.push_range(row..row + rows)?;
            } else {
                // Descending, so that it is stored as a list.
                let list: Vec<u64> = (row..row + rows).rev().collect();
                builder.push_list(&list)?;
            }
            row += rows;
        }
        let id = |_| u32::try_from(random.below(fragments as usize)).unwrap_or(0);
        let ids = (0..LOOKUPS).map(id).collect();
        Ok(Self {
            name: format!("{kind}_{fragments}"),
            blob: builder.finish(),
            ids,
        })
    }

    fn bench(&self, criterion: &mut Criterion) -> Result<(), Box<dyn std::error::Error>> {
        let blob = self.blob.as_slice();
        let index = FragmentIndex::parse(blob)?;
        let mut builder = FragmentIndexBuilder::default();
        for rows in &index {
            builder.push(&rows)?;
        }
        self.throughput(criterion, "parse", || FragmentIndex::parse(black_box(blob)));
        self.throughput(criterion, "walk", || index.iter().map(weight).sum::<u64>());
        self.throughput(criterion, "encode", || encode(&index));
        let mut copy = vec![0; blob.len()];
        self.throughput(criterion, "memcpy", || {
            copy.copy_from_slice(black_box(blob));
            black_box(copy.last().copied())
        });
        let ranked = index.ranked(vec![0; index.rank_slots()])?;
        self.lookups(criterion, "rows", |id| index.rows(id));
        self.lookups(criterion, "ranked", |id| ranked.rows(id));
        Ok(())
    }

    fn throughput<T>(&self, criterion: &mut Criterion, what: &str, mut work: impl FnMut() -> T) {
        let mut group = criterion.benchmark_group(what);
        let bytes = u64::try_from(self.blob.len()).unwrap_or(u64::MAX);
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function(&self.name, |b| b.iter(&mut work));
    }

    /// Benchmarks one lookup per iteration.
    fn lookups<'a>(
        &self,
        criterion: &mut Criterion,
        what: &str,
        lookup: impl Fn(u32) -> Option<Rows<'a>>,
    ) {
        let mut ids = self.ids.iter().copied().cycle();
        criterion
            .benchmark_group(what)
            .bench_function(&self.name, |b| {
                b.iter(|| lookup(black_box(ids.next().unwrap_or(0))));
            });
    }
}

/// Encodes all fragments.
fn encode(index: &FragmentIndex<'_>) -> Result<Vec<u8>, FragmentIndexLimit> {
    let mut builder = FragmentIndexBuilder::default();
    for rows in index {
        builder.push(&rows)?;
    }
    Ok(builder.finish())
}

/// Reads every number that the index stores for a fragment: both of a range, each row of a list.
fn weight(rows: Rows<'_>) -> u64 {
    match rows {
        Rows::Range(rows) => rows.start ^ rows.end,
        Rows::List(rows) => rows.iter().fold(0, |sum, row| sum ^ row),
    }
}
