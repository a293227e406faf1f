//! Running other programs.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::workspace;

/// A command whose errors name its command line.
#[derive(Debug)]
pub(crate) struct Run(Command);

/// Prepares `cargo` with these arguments, in the folder of the workspace.
pub(crate) fn cargo(words: &str) -> Run {
    program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).words(words)
}

/// Prepares a program, in the folder of the workspace.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Run {
    let mut command = Command::new(name);
    command.current_dir(workspace::root());
    Run(command)
}

/// Returns whether a program can be started.
pub(crate) fn exists(name: &str) -> bool {
    program(name).arg("--version").output().is_ok()
}

/// Returns whether `--version` of a program succeeds. A shim of a version manager can start and
/// still fail.
pub(crate) fn runs(name: impl AsRef<OsStr>) -> bool {
    let output = program(name).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

impl Run {
    /// Adds arguments, separated by spaces.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.0.args(words.split_whitespace());
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.0.arg(arg);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs the program with the standard streams of this process.
    pub(crate) fn run(mut self) -> Result<()> {
        let status = self.0.status().with_context(|| self.cannot_start())?;
        ensure!(status.success(), "{}: {status}", self.line());
        Ok(())
    }

    /// Runs the program and returns its standard output.
    pub(crate) fn read(mut self) -> Result<String> {
        let line = self.line();
        self.0.stderr(Stdio::inherit());
        let output = self.output()?;
        ensure!(output.status.success(), "{line}: {}", output.status);
        String::from_utf8(output.stdout).with_context(|| format!("{line}: the output is not UTF-8"))
    }

    /// Runs the program and returns its output and status.
    pub(crate) fn output(mut self) -> Result<Output> {
        self.0.output().with_context(|| self.cannot_start())
    }

    fn line(&self) -> String {
        let program = Path::new(self.0.get_program())
            .file_name()
            .unwrap_or(self.0.get_program());
        let words: Vec<_> = [program]
            .into_iter()
            .chain(self.0.get_args())
            .map(OsStr::to_string_lossy)
            .collect();
        words.join(" ")
    }

    fn cannot_start(&self) -> String {
        format!("cannot start `{}`", self.line())
    }
}

/// The feature set of CI: one for all stages, with and without tests, so that everything is compiled
/// once.
pub(crate) const EVERYTHING: &str = "--workspace --locked \
    --features zvf/aws,zvf/azure,zvf/gcp,zvf/http,zvf/object_store,zvf/zarrs,zvf-cli/http,\
    zvf-python/zarr,zvf-testkit/std";
/// The compiler of the crates of the workspace in CI: rustc with the lints of clippy, so that a check
/// is not a second compilation.
pub(crate) const WRAPPER: (&str, &str) = ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");

/// Prepares a command of cargo for a build.
pub(crate) type Build = fn(&str) -> Run;

/// The default features, without clients for buckets.
pub(crate) fn default_features(words: &str) -> Run {
    cargo(words).words("--workspace --locked")
}

/// Prepares a command of cargo for the build of CI.
pub(crate) fn everything(words: &str) -> Run {
    let (name, compiler) = WRAPPER;
    cargo(words).words(EVERYTHING).env(name, compiler)
}

/// Builds a binary or an example of the workspace with the features of CI.
pub(crate) fn built_here(target: &str) -> Result<PathBuf> {
    built(everything("build --quiet").words(target))
}

/// Runs a cargo build, prints what the compiler says, and fails if it warns.
pub(crate) fn without_warnings(build: Run) -> Result<()> {
    let output = build.words("--message-format json").output()?;
    let mut warnings = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).context("cargo's messages are not JSON")?;
        if message["reason"] == "compiler-message" {
            warnings += 1;
            println!(
                "{}",
                message["message"]["rendered"].as_str().unwrap_or_default()
            );
        }
    }
    print!("{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "cargo: {}", output.status);
    ensure!(warnings == 0, "{warnings} warnings");
    Ok(())
}

/// Runs a cargo build and returns its one artifact: an executable, or the library of a cdylib.
pub(crate) fn built(build: Run) -> Result<PathBuf> {
    let files = built_all(build)?;
    match files.as_slice() {
        [file] => Ok(file.clone()),
        files => bail!("the build produced {} files instead of one", files.len()),
    }
}

/// Runs a cargo build and returns all of its artifacts.
pub(crate) fn built_all(build: Run) -> Result<Vec<PathBuf>> {
    let messages = build
        .words("--message-format json-render-diagnostics")
        .read()?;
    let mut files = Vec::new();
    for message in messages.lines() {
        let message: Value =
            serde_json::from_str(message).context("cargo's messages are not JSON")?;
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let cdylib = message["target"]["crate_types"][0] == "cdylib";
        let file = match &message["executable"] {
            Value::String(file) => Some(file.as_str()),
            _ if cdylib => message["filenames"][0].as_str(),
            _ => None,
        };
        files.extend(file.map(PathBuf::from));
    }
    Ok(files)
}
