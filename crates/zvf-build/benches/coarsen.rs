//! Throughput of coarsening in vertices per second.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few hundred rings"
)]

use std::{f64::consts::TAU, hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput};
use zvf_build::coarsen::{CoarsenMethod, Simplices, Topology, VertexBlock, hausdorff_one_sided};

/// Number of vertices of a block.
const VERTICES: u32 = 100_000;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(5))
        .configure_from_args();
    collapse(&mut criterion);
    measure(&mut criterion);
    criterion.final_summary();
}

fn collapse(criterion: &mut Criterion) {
    let block = sphere(VERTICES);
    let mut group = criterion.benchmark_group("collapse");
    group.throughput(Throughput::Elements(block.len() as u64));
    for (keep, tolerance) in [(0.5, f64::INFINITY), (0.125, f64::INFINITY), (0.0, 0.000_1)] {
        let method = CoarsenMethod::Collapse {
            keep,
            tolerance,
            cull: 0,
        };
        let id = BenchmarkId::new("sphere", format!("keep {keep} within {tolerance}"));
        group.bench_with_input(id, &block, |bencher, block| {
            bencher.iter(|| black_box(method.merge(block)));
        });
    }
    group.finish();
}

fn measure(criterion: &mut Criterion) {
    let [fine, coarse] = [VERTICES, VERTICES / 8].map(sphere);
    let shapes = [&fine, &coarse].map(|block| Simplices {
        axes: 3,
        positions: &block.positions,
        width: 3,
        links: &block.links,
    });
    let mut group = criterion.benchmark_group("measure");
    group.throughput(Throughput::Elements(fine.len() as u64));
    group.bench_function("sphere", |bencher| {
        bencher.iter(|| hausdorff_one_sided(&shapes[0], &shapes[1], f64::INFINITY));
    });
    group.finish();
}

/// Returns a sphere of about this many vertices, as rings between poles.
fn sphere(vertices: u32) -> VertexBlock {
    let rings = (f64::from(vertices) / 2.0).sqrt() as u32;
    let around = 2 * rings;
    let mut positions = vec![0.0, 0.0, 1.0];
    for ring in 1..rings {
        let (out, height) = (TAU / 2.0 * f64::from(ring) / f64::from(rings)).sin_cos();
        for at in 0..around {
            let (y, x) = (TAU * f64::from(at) / f64::from(around)).sin_cos();
            positions.extend([out * x, out * y, height]);
        }
    }
    positions.extend([0.0, 0.0, -1.0]);
    let last = (rings - 1) * around + 1;
    let row = |ring: u32, at: u32| match ring {
        0 => 0,
        _ if ring == rings => last,
        _ => 1 + (ring - 1) * around + at % around,
    };
    let mut links = Vec::new();
    for ring in 0..rings {
        for at in 0..around {
            let [a, b] = [row(ring, at), row(ring, at + 1)];
            let [c, d] = [row(ring + 1, at), row(ring + 1, at + 1)];
            if ring + 1 < rings {
                links.extend([a, c, d]);
            }
            if ring > 0 {
                links.extend([a, d, b]);
            }
        }
    }
    VertexBlock {
        topology: Topology::Faces,
        axes: 3,
        positions,
        lower: vec![-2.0; 3],
        upper: vec![2.0; 3],
        width: 3,
        links,
        ..VertexBlock::default()
    }
}
