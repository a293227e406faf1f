//! Costs of reads: blocks, requests and bytes are minimal.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use zvf_dense::{
    ByteSource, DenseArray, Hyperslab, MemorySource, NumpyDtype, ReadCost,
    b2nd::{B2nd, B2ndDesign, B2ndWriter, DEFAULT_BUDGET},
    blosc::BloscCodec,
};
use zvf_testkit::golden::Golden;

use super::{recorded, written::sample};

/// A source in memory that counts reads like a file.
#[derive(Debug)]
struct Counting {
    bytes: MemorySource,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn take(&self) -> (u64, u64) {
        (
            self.reads.swap(0, Ordering::Relaxed),
            self.bytes.swap(0, Ordering::Relaxed),
        )
    }
}

impl ByteSource for Counting {
    fn name(&self) -> &str {
        self.bytes.name()
    }

    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts
            .bytes
            .fetch_add(u64::try_from(into.len()).unwrap(), Ordering::Relaxed);
        self.bytes.read_into(offset, into)
    }
}

fn counting(frame: Vec<u8>, offset: u64) -> (B2nd, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let bytes = MemorySource::new("memory", frame);
    let source = Counting {
        bytes,
        counts: counts.clone(),
    };
    let array = B2nd::from_source(Arc::new(source), offset, DEFAULT_BUDGET).unwrap();
    counts.take();
    (array, counts)
}

/// Reads on a single thread, where runs of blocks are not divided.
fn taken(array: &B2nd, counts: &Counts, selection: &Hyperslab) -> (ReadCost, u64) {
    let mut bytes = vec![0; array.byte_len(selection).unwrap()];
    let alone = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let plan = alone
        .install(|| array.slice_into(selection, &mut bytes))
        .unwrap();
    let (reads, read) = counts.take();
    assert_eq!(plan.bytes_read, read, "{selection:?}");
    assert_eq!(array.read_plan(selection).unwrap(), plan, "{selection:?}");
    counts.take();
    (plan, reads)
}

/// The two arrays in the benchmarks of the reference implementation, with items of one byte: blocks
/// and requests for planes along each axis.
#[test]
fn planes_and_points_decode_only_touched_blocks() {
    let cases = [
        (
            &[400_u64, 300, 150],
            &[100_u64, 50, 40],
            &[10_u64, 50, 5],
            [(180_u64, 48_u64), (1200, 68), (240, 264)],
        ),
        (
            &[256, 256, 256],
            &[64, 64, 64],
            &[16, 16, 16],
            [(256, 32), (256, 80), (256, 272)],
        ),
    ];
    for (shape, chunk, block, planes) in cases {
        let items = usize::try_from(shape.iter().product::<u64>()).unwrap();
        // Raw chunks are fast to write and have known lengths.
        let design = B2ndDesign::new(shape, NumpyDtype::parse("|u1").unwrap())
            .with_chunks(chunk, block)
            .with_codec(BloscCodec::Lz4, 0);
        let bytes: Vec<u8> = (0..items).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let frame = B2ndWriter::encode(&design, &bytes).unwrap();
        let (array, counts) = counting(frame, 0);
        let block_len = block.iter().product::<u64>();
        let blocks = |(chunk, block): (&u64, &u64)| chunk.div_ceil(*block);
        let prefix = 32 + 4 * chunk.iter().zip(block).map(blocks).product::<u64>();
        for (axis, (blocks, reads)) in planes.into_iter().enumerate() {
            for at in [0, shape[axis] / 2, shape[axis] - 1] {
                let (mut start, mut stop) = (vec![0; 3], shape.to_vec());
                (start[axis], stop[axis]) = (at, at + 1);
                let selection = Hyperslab::new(&start, &stop, None).unwrap();
                let (plan, counted) = taken(&array, &counts, &selection);
                assert_eq!(
                    (plan.blocks, counted),
                    (blocks, reads),
                    "{shape:?} {axis} {at}"
                );
                let bytes = plan.chunks * prefix + blocks * block_len;
                assert_eq!(plan.bytes_read, bytes, "{shape:?} {axis} {at}");
            }
        }
        let point = Hyperslab::new(&[99, 99, 99], &[100, 100, 100], None).unwrap();
        let (plan, counted) = taken(&array, &counts, &point);
        assert_eq!((plan.chunks, plan.blocks, counted), (1, 1, 2));
        assert_eq!(plan.bytes_read, prefix + block_len);
    }
}

/// Plans equal the costs of reads for coded chunks, dictionaries, deltas and repeated values.
#[test]
fn plans_of_recorded_frames_match_reads() {
    let golden = Golden::open("b2nd");
    let mut selections = 0;
    for (_, bytes) in recorded(&golden) {
        let (array, counts) = counting(bytes.to_vec(), 0);
        let shape = array.shape().to_vec();
        taken(&array, &counts, &Hyperslab::whole(&shape));
        for step in [1, 3] {
            let stop: Vec<u64> = shape.iter().map(|extent| extent.div_ceil(2)).collect();
            let steps = vec![step; shape.len()];
            let selection = Hyperslab::new(&vec![0; shape.len()], &stop, Some(&steps)).unwrap();
            taken(&array, &counts, &selection);
            selections += 1;
        }
    }
    assert!(selections > 120, "{selections}");
}

/// Blocks between the steps of a selection are not decoded.
#[test]
fn steps_skip_untouched_blocks() {
    let design =
        B2ndDesign::new(&[1000], NumpyDtype::parse("<i2").unwrap()).with_chunks(&[100], &[10]);
    let frame = B2ndWriter::encode(&design, &sample(2000, 2)).unwrap();
    let (array, counts) = counting(frame, 0);
    let every = |step| Hyperslab::new(&[0], &[1000], Some(&[step])).unwrap();
    for (step, chunks, blocks) in [(1, 10, 100), (10, 10, 100), (20, 10, 50), (250, 4, 4)] {
        let (plan, _) = taken(&array, &counts, &every(step));
        assert_eq!((plan.chunks, plan.blocks), (chunks, blocks), "{step}");
    }
}
