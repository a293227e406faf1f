//! `zvf doctor`: reports the capabilities of this build and the state of the machine.

use std::{env, error::Error, io::Write, path::PathBuf, thread};

use serde_json::{Value, json};
use zvf::{Dataset, Generation, OpenOptions};
use zvf_dense::tet::available_memory;
use zvf_files::FileFormat;
use zvf_model::error_chain::error_chain;

use crate::{
    display::{group_digits, len_u64},
    outcome::CommandOutcome,
};

/// Report version, features, supported stores, limits and memory
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exits with 1 if the folder for temporary files is not writable or the store cannot be opened.

Examples:
  zvf doctor
  zvf doctor tracts.zv
  zvf doctor --json"
)]
pub(crate) struct DoctorArgs {
    /// Store to open, as a test of access to it.
    store: Option<String>,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A kind of storage.
struct StorageKind {
    name: &'static str,
    /// Prefix of its addresses.
    address: &'static str,
    /// Cargo feature that enables it, if it is not always present.
    feature: Option<&'static str>,
    is_built: bool,
}

const BACKENDS: [StorageKind; 6] = [
    StorageKind {
        name: "a folder",
        address: "PATH",
        feature: None,
        is_built: true,
    },
    StorageKind {
        name: "a zip file",
        address: "PATH.zip",
        feature: None,
        is_built: true,
    },
    StorageKind {
        name: "a web server",
        address: "https:",
        feature: Some("http"),
        is_built: cfg!(feature = "http"),
    },
    StorageKind {
        name: "Amazon S3 and compatible storage",
        address: "s3:",
        feature: Some("aws"),
        is_built: cfg!(feature = "aws"),
    },
    StorageKind {
        name: "Google Cloud Storage",
        address: "gs:",
        feature: Some("gcp"),
        is_built: cfg!(feature = "gcp"),
    },
    StorageKind {
        name: "Azure Blob Storage",
        address: "az:",
        feature: Some("azure"),
        is_built: cfg!(feature = "azure"),
    },
];

/// The report.
struct DoctorReport {
    temporary: (PathBuf, Result<(), String>),
    cores: Option<u64>,
    memory: Option<u64>,
    budget: u64,
    /// Size of the cell cache of an open store.
    cache: u64,
    store: Option<StoreCheck>,
}

/// Result of opening a store.
struct StoreCheck {
    address: String,
    generation: Result<String, String>,
    requests: u64,
    bytes: u64,
}

pub(crate) async fn run(arguments: &DoctorArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let folder = env::temp_dir();
    let temporary = write_in(&folder).map_err(|error| error.to_string());
    let store = match &arguments.store {
        None => None,
        Some(address) => Some(open(address, arguments.anonymous).await),
    };
    let found = DoctorReport {
        temporary: (folder, temporary),
        cores: thread::available_parallelism()
            .ok()
            .map(|n| len_u64(n.get())),
        memory: available_memory(),
        budget: OpenOptions::default().open("memory:")?.budget(),
        cache: OpenOptions::default().cache,
        store,
    };
    let is_negative = !found.is_well();
    let text = if arguments.json {
        serde_json::to_string_pretty(&found.object())?
    } else {
        found.text()
    };
    Ok(CommandOutcome {
        is_negative,
        ..CommandOutcome::from(text)
    })
}

/// Writes a temporary file, to test that the folder is writable.
fn write_in(folder: &std::path::Path) -> std::io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(b"zvf")?;
    file.sync_all()
}

async fn open(address: &str, anonymous: bool) -> StoreCheck {
    let options = OpenOptions::default().anonymous(anonymous);
    match Dataset::open_with(address, &options).await {
        Ok(dataset) => {
            let activity = dataset.store().activity();
            StoreCheck {
                address: dataset.address().to_owned(),
                generation: Ok(dataset.detection().generation.to_string()),
                requests: activity.requests.saturating_add(activity.lists),
                bytes: activity.bytes_read,
            }
        }
        Err(error) => StoreCheck {
            address: address.to_owned(),
            generation: Err(error_chain(&error)),
            requests: 0,
            bytes: 0,
        },
    }
}

fn features() -> Vec<&'static str> {
    let all = [
        ("arrow", cfg!(feature = "arrow")),
        ("parquet", cfg!(feature = "parquet")),
        ("http", cfg!(feature = "http")),
        ("aws", cfg!(feature = "aws")),
        ("gcp", cfg!(feature = "gcp")),
        ("azure", cfg!(feature = "azure")),
    ];
    let built_in = all.into_iter().filter(|(_, is_there)| *is_there);
    built_in.map(|(name, _)| name).collect()
}

fn generations() -> Vec<String> {
    Generation::ALL.map(|it| it.to_string()).to_vec()
}

fn formats() -> Vec<&'static str> {
    let formats = FileFormat::ALL.into_iter();
    let built_in = formats.filter(|format| format.is_built());
    built_in.map(FileFormat::extension).collect()
}

impl DoctorReport {
    fn is_well(&self) -> bool {
        let opens = |store: &StoreCheck| store.generation.is_ok();
        self.temporary.1.is_ok() && self.store.as_ref().is_none_or(opens)
    }

    fn object(&self) -> Value {
        let backends = BACKENDS.map(|backend| {
            json!({
                "name": backend.name,
                "address": backend.address,
                "feature": backend.feature,
                "built_in": backend.is_built,
            })
        });
        let (folder, writable) = &self.temporary;
        json!({
            "ok": self.is_well(),
            "version": env!("CARGO_PKG_VERSION"),
            "target": target(),
            "debug_build": cfg!(debug_assertions),
            "generations": generations(),
            "features": features(),
            "formats": formats(),
            "backends": backends,
            "limits": { "memory_budget": self.budget, "cell_cache": self.cache },
            "temporary": {
                "path": folder.display().to_string(),
                "writable": writable.is_ok(),
                "error": writable.as_ref().err(),
            },
            "cores": self.cores,
            "memory_available": self.memory,
            "store": self.store.as_ref().map(|store| json!({
                "address": store.address,
                "generation": store.generation.as_ref().ok(),
                "requests": store.requests,
                "bytes_read": store.bytes,
                "error": store.generation.as_ref().err(),
            })),
        })
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("zvf {}, {}", env!("CARGO_PKG_VERSION"), target())];
        let mut line = |title: &str, text: String| lines.push(format!("  {title:<12}{text}"));
        if cfg!(debug_assertions) {
            line(
                "build",
                "debug: many times slower than --release".to_owned(),
            );
        }
        line("reads", format!("stores of {}", generations().join(", ")));
        line("tables", formats().join(", "));
        for (at, backend) in BACKENDS.into_iter().enumerate() {
            let title = if at == 0 { "stores in" } else { "" };
            let lack = match backend.feature {
                Some(feature) if !backend.is_built => {
                    format!(": not in this build, --features {feature}")
                }
                _ => String::new(),
            };
            let StorageKind { name, address, .. } = backend;
            line(title, format!("{name} ({address}){lack}"));
        }
        let budget = self.budget;
        line(
            "memory",
            format!("at most {} bytes for a result", group_digits(budget)),
        );
        if let Some(free) = self.memory {
            let short = if free < budget {
                ", less than that"
            } else {
                ""
            };
            line("", format!("{} bytes are free{short}", group_digits(free)));
        }
        line(
            "cache",
            format!(
                "none on disk; an open store keeps metadata, and cells in {} bytes",
                group_digits(self.cache)
            ),
        );
        if let Some(cores) = self.cores {
            line("cores", cores.to_string());
        }
        let (folder, writable) = &self.temporary;
        let state = match writable {
            Ok(()) => "can be written".to_owned(),
            Err(why) => format!("cannot be written: {why}; set TMPDIR to a writable folder"),
        };
        line("temporary", format!("{}, {state}", folder.display()));
        if let Some(store) = &self.store {
            let state = match &store.generation {
                Err(why) => why.clone(),
                Ok(generation) => format!(
                    "{}: generation {generation}, opened with {} requests, {} bytes",
                    store.address,
                    store.requests,
                    group_digits(store.bytes)
                ),
            };
            line("store", state);
        }
        lines.join("\n")
    }
}

fn target() -> String {
    format!("{}-{}", env::consts::ARCH, env::consts::OS)
}
