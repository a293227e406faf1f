//! Inner loops under Callgrind: `cargo xtask bench --compare` counts the instructions of each.
//!
//! Run directly, it prints the time of each.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool reports on its standard streams"
)]

use std::{env, error::Error, hint::black_box, time::Instant};

use zvf_bench::{Kernel, kernels};

/// Number of uncounted runs of a kernel, which fill its caches.
const WARM: usize = 2;
/// Number of runs; the minimum counts.
const TIMES: usize = 30;

fn main() -> Result<(), Box<dyn Error>> {
    // Run all work of rayon on this thread, the one that is counted.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.use_current_thread().build_global()?;
    let is_counted = env::args().any(|word| word == "--count");
    for mut kernel in kernels()? {
        for _ in 0..WARM {
            kernel.run()?;
        }
        if is_counted {
            counted(&mut kernel)?;
            println!("{}", kernel.name);
            continue;
        }
        let mut least = f64::INFINITY;
        for _ in 0..TIMES {
            let start = Instant::now();
            black_box(kernel.run()?);
            least = least.min(start.elapsed().as_secs_f64());
        }
        println!("{:22} {:>10.1} µs", kernel.name, least * 1e6);
    }
    Ok(())
}

/// Runs a kernel. Callgrind counts only this function, selected by its name.
#[inline(never)]
fn counted(kernel: &mut Kernel) -> Result<usize, Box<dyn Error>> {
    Ok(black_box(kernel.run()?))
}
