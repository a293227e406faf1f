//! Settings of glibc's allocator for commands with a bound on memory.

/// Starts the process again with an allocator that returns freed blocks of more than `kept` bytes to
/// the system, unless the user has set it. glibc reads its settings before `main`; other systems need
/// none.
///
/// By default, glibc learns from the first large block that is freed to keep blocks of up to 32 MiB, in
/// a heap for each thread. A server kept 249 MB instead of 137 MB after a mesh of a million vertices,
/// and `zvf create --memory 256MiB` took 601 MB for 20 million points of streamlines. A block that is
/// returned is cleared by the system when it is needed again: with the least `kept`, this took half of
/// the time of `zvf create`.
pub(crate) fn return_freed_memory(kept: u64) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::start_again(kept);
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = kept;
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::{env, os::unix::process::CommandExt, process::Command};

    /// Bounds of the size of blocks that are kept. glibc ignores more than 32 MiB.
    const KEPT: [u64; 2] = [256 << 10, 16 << 20];

    pub(super) fn start_again(kept: u64) {
        let [least, most] = KEPT;
        let kept = kept.clamp(least, most);
        let settings = [
            ("MALLOC_ARENA_MAX", 2),
            ("MALLOC_MMAP_THRESHOLD_", kept),
            // A free end of the heap of this size.
            ("MALLOC_TRIM_THRESHOLD_", kept * 2),
        ];
        if settings.iter().any(|(name, _)| env::var_os(name).is_some()) {
            return;
        }
        let settings = settings.map(|(name, value)| (name, value.to_string()));
        if let Ok(program) = env::current_exe() {
            let mut command = Command::new(program);
            let mut arguments = env::args_os();
            // Python finds its virtual environment beside this path, which is often a link.
            if let Some(name) = arguments.next() {
                command.arg0(name);
            }
            // It only returns if the program cannot be started: the default settings are as right, but
            // take more memory.
            let _ = command.args(arguments).envs(settings).exec();
        }
    }
}
