//! Tests that read stores from servers on this machine.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Child,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    metadata, node, python,
    run::{EVERYTHING, Run, cargo, program},
    stage::Done,
    workspace,
};

/// The prefix of the lines in which tests report comparisons.
const MARK: &str = "servers: ";
/// The number of tests that print such a line.
const REPORTS: usize = 17;

/// The account that every Azurite has, with its documented key.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Starts an S3 server, Azurite and a web server, uploads recorded stores, and runs the
/// tests that need them, with `scale` times as many random cases and kills.
pub(crate) fn all(scale: u32) -> Result<Done> {
    let Some(modules) = node::packages()? else {
        return Ok(Done::Skipped(node::MISSING.to_owned()));
    };
    let Some(python) = python::servers()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    // Compile first, so that a compile error does not look like a failure of a server.
    let build = cargo("test --quiet").words(EVERYTHING);
    build.words("--test it --no-run").run()?;
    let folder = metadata::stores()?.join("servers");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the folder of the last run")?;
    }
    let stores = folder.join("stores");
    fs::create_dir_all(&stores)?;

    let mut servers = [
        Server::start("s3", &folder, |port| {
            python::running(&python, "s3_server.py").arg(port)
        })?,
        Server::start("azure", &folder, |port| {
            let options = "--silent --inMemoryPersistence --disableTelemetry \
                --skipApiVersionCheck --blobHost 127.0.0.1 --blobPort";
            let azurite = modules.join("azurite/dist/src/blob/main.js");
            program("node").arg(azurite).words(options).arg(port)
        })?,
        Server::start("http", &folder, |port| {
            let script = workspace::root().join("xtask/node/ranges.js");
            let run = program("node").env("NODE_PATH", &modules).arg(script);
            run.arg(&stores).arg(port)
        })?,
    ];
    for server in &mut servers {
        server.wait()?;
    }
    let outcome = fill_and_test(&servers, &python, &stores, scale);
    if outcome.is_err() {
        for server in &servers {
            server.print_log();
        }
    }
    outcome
}

fn fill_and_test(servers: &[Server; 3], python: &Path, stores: &Path, scale: u32) -> Result<Done> {
    let [s3, azure, http] = servers.each_ref().map(Server::url);
    let fill = python::running(python, "fill_servers.py");
    with_account(fill).arg(stores).arg(&s3).arg(&azure).run()?;
    let tests = cargo("test --quiet").words(EVERYTHING);
    // One thread per server: they wait most of the time.
    let tests = tests.words("--test it servers:: -- --ignored --nocapture --test-threads 4");
    let foreign = |name: &str| {
        let clouds = ["AWS_", "AZURE_", "GOOGLE_"];
        let proxies = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];
        let name = name.to_ascii_lowercase();
        proxies.contains(&name.as_str())
            || clouds
                .iter()
                .any(|cloud| name.starts_with(&cloud.to_ascii_lowercase()))
    };
    // The variables that a user would set; object_store reads all but the last two.
    let output = with_account(tests.without_env(foreign))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL", &s3)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AZURE_STORAGE_ENDPOINT", format!("{azure}/{ACCOUNT}"))
        .env("AZURE_ALLOW_HTTP", "true")
        // Neither npm nor PyPI has a Google Cloud Storage server that lists. Its client uses the
        // protocol of S3.
        .env("GOOGLE_BASE_URL", &s3)
        .env("GOOGLE_BEARER_TOKEN", "test")
        .env("ZVF_TEST_STORES", stores)
        .env("ZVF_TEST_HTTP", &http)
        .env("ZVF_TEST_SCALE", scale.to_string())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let reports: Vec<&str> = reports(&text).collect();
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    for report in &reports {
        println!("{report}");
    }
    ensure!(output.status.success(), "tests: {}", output.status);
    let count = reports.len();
    ensure!(count == REPORTS, "{count} tests reported, not {REPORTS}");
    Ok(Done::Passed)
}

/// Finds the lines that the tests print; libtest may put other text in front.
fn reports(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines();
    lines.filter_map(|line| line.find(MARK).and_then(|at| line.get(at..)))
}

fn with_account(run: Run) -> Run {
    run.env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        .env("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY)
}

/// A server process that is killed on drop.
struct Server {
    name: &'static str,
    address: SocketAddr,
    child: Child,
    log: PathBuf,
}

impl Server {
    fn start(name: &'static str, folder: &Path, run: impl FnOnce(&str) -> Run) -> Result<Self> {
        // Another process may take the port before the server binds it. The server then ends, which
        // `wait` reports.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = folder.join(format!("{name}.log"));
        let child = run(&address.port().to_string()).start(&log)?;
        Ok(Self {
            name,
            address,
            child,
            log,
        })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the first response of any kind.
    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while !self.responds() {
            if let Some(status) = self.child.try_wait()? {
                self.print_log();
                bail!("the {} server ended: {status}", self.name);
            }
            if start.elapsed() > Duration::from_mins(2) {
                self.print_log();
                bail!("the {} server does not respond", self.name);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn responds(&self) -> bool {
        let patience = Duration::from_secs(5);
        let connect = || {
            let mut stream = TcpStream::connect_timeout(&self.address, patience)?;
            stream.set_read_timeout(Some(patience))?;
            stream.write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            stream.read_exact(&mut [0; 8])
        };
        connect().is_ok()
    }

    fn print_log(&self) {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.len().saturating_sub(20);
        println!("the last the {} server said:", self.name);
        for line in lines.iter().skip(last) {
            println!("  {line}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_reports_among_what_libtest_prints() {
        let output = "running 2 tests\nservers: s3 12\n.servers: azure 3\ntest result: ok";
        let found: Vec<&str> = reports(output).collect();
        assert_eq!(found, ["servers: s3 12", "servers: azure 3"]);
    }
}
