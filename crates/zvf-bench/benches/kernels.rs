//! Inner loops under callgrind: `cargo xtask bench --compare` counts the instructions of each.
//!
//! By itself it prints how long each takes.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool reports on its standard streams"
)]

use std::{env, error::Error, hint::black_box, time::Instant};

use zvf_bench::{Kernel, kernels};

/// Times a kernel is done without being counted: what it keeps is there then.
const WARM: usize = 2;
/// Times that the least is taken of.
const TIMES: usize = 30;

fn main() -> Result<(), Box<dyn Error>> {
    // All work of rayon on this thread, which is the one that is counted.
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

/// Callgrind is told to look at what is inside of this, by its name.
#[inline(never)]
fn counted(kernel: &mut Kernel) -> Result<usize, Box<dyn Error>> {
    Ok(black_box(kernel.run()?))
}
