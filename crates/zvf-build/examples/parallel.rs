//! Plans a store once and encodes it with several independent threads. Tasks give equal cells on
//! any thread or machine.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use zvf_build::{Design, Geometry, GeometryKind, NumericColumn, Output, WritePlan};

fn main() -> Result<(), Box<dyn Error>> {
    let positions = (0..30_000_u16).map(|at| f32::from(at % 1000) / 10.0);
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    let plan = WritePlan::new(Geometry::new(NumericColumn::float32(3, positions)), design)?;
    let next = AtomicUsize::new(0);
    let made: Vec<Result<(usize, usize), zvf_build::BuildError>> = thread::scope(|scope| {
        let work = || {
            let (mut cells, mut bytes) = (0, 0);
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= plan.tasks() {
                    return Ok((cells, bytes));
                }
                for output in plan.run(task)? {
                    if let Output::Cell { payload, .. } = output {
                        cells += 1;
                        bytes += payload.len();
                    }
                }
            }
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .filter_map(|it| it.join().ok())
            .collect()
    });
    for (thread, made) in made.into_iter().enumerate() {
        let (cells, bytes) = made?;
        println!("thread {thread}: {cells} cells, {bytes} bytes");
    }
    println!("{} outputs belong to no chunk", plan.rest()?.len());
    Ok(())
}
