//! A child process that may be killed.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, getpid, kill_process};
use zvf::OpenOptions;

use super::{kills::KillTime, levels, scenario::Scenario, writers};
use crate::block_on;

/// Environment variable with the job of the child process.
const JOB: &str = "ZVF_TEST_JOB";
const ADDRESS: &str = "ZVF_TEST_ADDRESS";
/// Prefix of the lines that the child process prints.
const MARK: &str = "child: ";

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Killed,
    /// Completed after this many calls of the hook and this many microseconds.
    Done {
        calls: usize,
        micros: u64,
    },
}

/// Runs a scenario on the store at an address in a process that is killed at `kill_time`.
pub(super) fn run(scenario: Scenario, kill_time: KillTime, address: &str) -> End {
    run_job(&scenario.word(), kill_time, address)
}

/// Runs the job that a word encodes.
pub(super) fn run_job(word: &str, kill_time: KillTime, address: &str) -> End {
    let output = command(&format!("{word} {}", kill_time.word()), address)
        .output()
        .unwrap();
    if output.status.signal() == Some(9) {
        return End::Killed;
    }
    let lines = printed_lines(&output);
    let mut numbers = lines[0].split(' ').map(|number| number.parse().unwrap());
    let (calls, micros) = (numbers.next().unwrap(), numbers.next().unwrap());
    End::Done {
        calls: usize::try_from(calls).unwrap(),
        micros,
    }
}

/// Returns a command that runs this program as a child process.
pub(super) fn command(job: &str, address: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "killed::child::another_process"])
        .args(["--ignored", "--nocapture", "--test-threads", "1"])
        .envs([(JOB, job), (ADDRESS, address)]);
    command
}

/// Returns the lines that a successful process printed.
pub(super) fn printed_lines(output: &Output) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    let lines = out.lines().filter_map(|line| line.split_once(MARK));
    lines.map(|(_, line)| line.to_owned()).collect()
}

#[expect(clippy::print_stdout, reason = "read by the parent process")]
pub(super) fn print_line(line: &str) {
    // libtest may have begun the line.
    println!("\n{MARK}{line}");
}

#[test]
#[ignore = "run by other tests, as another process; alone it does nothing"]
fn another_process() {
    let [Ok(job), Ok(address)] = [JOB, ADDRESS].map(std::env::var) else {
        return;
    };
    if let Some(job) = job.strip_prefix("write ") {
        return writers::write(job, &address);
    }
    let (scenario, kill_time) = job.split_once(' ').unwrap();
    let kill_time = KillTime::of_word(kill_time);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let open = OpenOptions::default().write_hook(Arc::new(move |_, _| {
        let at = count.fetch_add(1, Ordering::SeqCst) + 1;
        if kill_time == KillTime::At(at) {
            die();
        }
    }));
    if let KillTime::After(wait) = kill_time {
        thread::spawn(move || {
            thread::sleep(Duration::from_micros(wait));
            die()
        });
    }
    let start = Instant::now();
    let done = match scenario.strip_prefix("levels/") {
        Some(build) => block_on(levels::perform(build, &address, &open)),
        None => block_on(Scenario::of_word(scenario).perform(&address, &open)),
    };
    done.unwrap();
    let micros = start.elapsed().as_micros();
    print_line(&format!("{} {micros}", calls.load(Ordering::SeqCst)));
}

/// Ends the process at once: no other thread and no destructor runs.
fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    loop {
        thread::park();
    }
}
