//! Limits on what a damaged store makes coarsening compute.

use zvf_build::coarsen::{
    CoarsenError, CoarsenInput, CoarsenMethod, Coarsener, FineChunk, Ownership, Placement,
};
use zvf_format::{
    fragment::FragmentIndexBuilder,
    numeric::{ByteOrder, Dtype, Kind},
};
use zvf_model::grid::{Bins, ChunkShape};

fn points(bins: Bins) -> Coarsener {
    Coarsener {
        method: CoarsenMethod::Bins {
            cell: vec![1.0],
            placement: Placement::Mean,
            share: false,
        },
        axes: 1,
        positions: Dtype::new(Kind::Float32, ByteOrder::Little),
        shape: Ownership::Exclusive,
        has_objects: false,
        kept: None,
        bins: Some(bins),
        width: None,
        directed: false,
        vertex: Vec::new(),
        fragment: Vec::new(),
        link: Vec::new(),
    }
}

fn bins(extent: f64) -> Bins {
    let shape = |extent: f64| ChunkShape::new(&[extent]).unwrap();
    Bins::new(&shape(32.0), shape(extent)).unwrap()
}

fn made(coarsener: &Coarsener, rows: usize, fragments: usize) -> Result<u32, CoarsenError> {
    let mut builder = FragmentIndexBuilder::default();
    for _ in 0..fragments {
        builder.push_range(0..rows as u64).unwrap();
    }
    let index = builder.finish();
    let positions = vec![0; 4 * rows];
    let chunk = FineChunk {
        name: "0/vertices/0".to_owned(),
        positions: &positions,
        fragments: &index,
        ..FineChunk::default()
    };
    let input = CoarsenInput {
        chunks: vec![chunk],
        links: Vec::new(),
    };
    let made = coarsener.make(&input, vec![0.0], vec![32.0])?;
    Ok(made.rows)
}

/// Regression test: fragments of a chunk of 128 kB listed any number of rows.
#[test]
fn overlapping_fragments_are_limited() {
    let coarsener = points(bins(1.0));
    assert_eq!(made(&coarsener, 1 << 15, 2), Ok(1));
    let chunk = "0/vertices/0".to_owned();
    let found = made(&coarsener, 1 << 15, 1 << 14);
    assert_eq!(found, Err(CoarsenError::TooManyListed { chunk }));
}

/// Regression test: each bin, used or not, became a fragment.
#[test]
fn bins_are_limited() {
    let number = 1_u32 << 25;
    let found = made(&points(bins(32.0 / f64::from(number))), 1, 1);
    let bins = u64::from(number);
    assert_eq!(found, Err(CoarsenError::TooManyBins { bins }));
}
