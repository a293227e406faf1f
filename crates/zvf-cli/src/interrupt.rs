//! Signals that end the process: SIGINT, as Ctrl-C sends it, and SIGTERM.

/// Ends the process when it gets SIGINT or SIGTERM: removes the temporary files beside outputs,
/// says what happened, and exits with 130 or 143, as shells report these signals.
///
/// Stores need no work: a change is visible once it is committed, and the next run replaces what an
/// uncommitted one left. A thread waits, because decoding keeps the async thread busy.
#[cfg(unix)]
pub(crate) fn end_on_signals() {
    // Without the thread, the system ends the process.
    let _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread();
            if let Some((signal, code)) = wait(runtime) {
                zvf_dense::staged::remove_unpublished();
                if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
                    // The line of the progress bar.
                    anstream::eprintln!();
                }
                anstream::eprintln!(
                    "interrupted by {signal}: what is committed stays, and the next run replaces \
                     the rest"
                );
                std::process::exit(code);
            }
        });
}

/// Ends the process as the system does.
#[cfg(not(unix))]
pub(crate) fn end_on_signals() {}

/// Waits for a signal, and returns its name and the exit code. Returns `None` if signals cannot be
/// received.
#[cfg(unix)]
fn wait(mut runtime: tokio::runtime::Builder) -> Option<(&'static str, i32)> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = runtime.enable_io().build().ok()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).ok()?;
        let mut terminate = signal(SignalKind::terminate()).ok()?;
        std::future::poll_fn(|context| {
            if interrupt.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(Some(("SIGINT", 130)));
            }
            let is_over = terminate.poll_recv(context);
            is_over.map(|_| Some(("SIGTERM", 143)))
        })
        .await
    })
}
