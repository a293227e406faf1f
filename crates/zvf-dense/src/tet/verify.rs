//! Verification of a file: the checks of opening it, and costlier ones.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};
use zstd::bulk::Decompressor;
use zvf_format::tetration::{ChunkFault, ChunkMapError, DatasetFault, DirectoryError};
use zvf_model::error_chain::error_chain;

use super::{TetError, TetFile, TetOptions, writer::crc};
use crate::{ByteSource, DenseArray, DenseError};

/// Number of payloads decoded unless all are requested.
const SAMPLE: u64 = 128;
/// Maximum number of failures reported individually per check; all are counted.
const MAX_LISTED: usize = 20;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TetSeverity {
    /// The check passed, or reports a fact.
    Info,
    /// Valid but noteworthy.
    Warning,
    /// The file is damaged or invalid.
    Error,
}

impl TetSeverity {
    /// Returns the name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct TetFinding {
    /// Name of the check, as in the tools of the format if they have it.
    pub check: &'static str,
    /// Severity of the result.
    pub severity: TetSeverity,
    /// Description of the result.
    pub detail: Option<String>,
}

impl TetFinding {
    fn ok(check: &'static str) -> Self {
        Self {
            check,
            severity: TetSeverity::Info,
            detail: None,
        }
    }

    fn new(check: &'static str, severity: TetSeverity, detail: String) -> Self {
        Self {
            check,
            severity,
            detail: Some(detail),
        }
    }
}

/// The results of verifying a file.
#[derive(Debug)]
pub struct Verification {
    /// Results in the order of the checks.
    pub findings: Vec<TetFinding>,
    /// The open file, unless opening failed.
    pub file: Option<TetFile>,
    /// Number of payloads that were decoded or compared with their checksum.
    pub chunks_checked: u64,
}

impl Verification {
    /// Returns whether no finding is an error.
    pub fn is_ok(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity != TetSeverity::Error)
    }

    /// Converts the results to JSON: `ok`, `findings`, and a `summary` if the file could be opened.
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "check": finding.check,
                    "severity": finding.severity.name(),
                    "ok": finding.severity != TetSeverity::Error,
                    "detail": finding.detail,
                })
            })
            .collect();
        let summary = self.file.as_ref().map(|file| {
            json!({
                "layout": 1,
                "datasets": file.datasets().len(),
                "chunks": file.superblock().rows(),
                "chunks_checked": self.chunks_checked,
                "history": file.footer().map_or(0, |footer| footer.history.len()),
                "metadata": file.footer().is_some_and(|footer| footer.metadata.is_some()),
                "footer": file.footer().is_some(),
                "checksums": file.footer().is_some_and(|footer| footer.checksums.is_some()),
            })
        });
        json!({ "ok": self.is_ok(), "findings": findings, "summary": summary })
    }
}

/// Verifies the structure of a file and its payloads: all with `deep`, otherwise the first 128. Raw
/// payloads can be verified only against checksums, which few files have.
///
/// # Errors
///
/// If bytes cannot be read. Invalid content is a finding, not an error.
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: TetOptions,
    deep: bool,
) -> Result<Verification, DenseError> {
    let mut findings = Vec::new();
    let file = match TetFile::open(source, options) {
        Ok(file) => file,
        Err(DenseError::Tet { source, .. }) => {
            let check = check_of(&source);
            findings.push(TetFinding::new(
                check,
                TetSeverity::Error,
                error_chain(&source),
            ));
            return Ok(Verification {
                findings,
                file: None,
                chunks_checked: 0,
            });
        }
        Err(error) => return Err(error),
    };
    let proven = [
        "parse",
        "superblock",
        "dataset_directory",
        "chunk_index",
        "chunk_payloads",
        "chunk_dataset_ids",
        "dataset_tensor_bytes",
        "payload_offsets",
        "chunk_coords",
    ];
    findings.extend(proven.map(TetFinding::ok));
    findings.push(payload_order(&file)?);
    findings.push(reserved(&file)?);
    findings.push(names(&file));
    if let Some(footer) = file.footer() {
        let detail = format!("version {}, {} bytes", footer.version, footer.json_len);
        findings.push(TetFinding::new("footer", TetSeverity::Info, detail));
    }
    let chunks_checked = payloads(&file, deep, &mut findings)?;
    Ok(Verification {
        findings,
        file: Some(file),
        chunks_checked,
    })
}

/// Returns the check that detects an error of opening.
fn check_of(error: &TetError) -> &'static str {
    match error {
        TetError::Map(ChunkMapError::Row { fault, .. }) => match fault {
            ChunkFault::Dataset(_) => "chunk_dataset_ids",
            ChunkFault::UnusedSlot { .. } => "chunk_coords",
            ChunkFault::Span { .. } => "chunk_payloads",
            _ => "dataset_tensor_bytes",
        },
        TetError::Map(_)
        | TetError::Directory(DirectoryError::Dataset {
            fault:
                DatasetFault::Dtype(_) | DatasetFault::Extent { .. } | DatasetFault::ChunkExtent { .. },
            ..
        }) => "dataset_tensor_bytes",
        TetError::DuplicateTile { .. } => "chunk_coords",
        TetError::Overlap(_) => "payload_offsets",
        TetError::Footer(_) | TetError::FooterJson(_) | TetError::FooterValue { .. } => "footer",
        _ => "parse",
    }
}

fn payload_order(file: &TetFile) -> Result<TetFinding, DenseError> {
    let start = file.superblock().index_span().end;
    let is_in_order = file.with_index(|index| {
        let mut end = start;
        index.iter().all(|row| {
            let follows = row.payload_offset() == end;
            end = row.payload_span().end;
            follows
        })
    })?;
    Ok(if is_in_order {
        TetFinding::ok("payload_order")
    } else {
        let detail = "payloads are not side by side in the order of the rows";
        TetFinding::new("payload_order", TetSeverity::Warning, detail.to_owned())
    })
}

fn reserved(file: &TetFile) -> Result<TetFinding, DenseError> {
    let rows = file.with_index(|index| index.iter().filter(|row| row.reserved() != 0).count())?;
    Ok(match rows {
        0 => TetFinding::ok("reserved_fields"),
        rows => {
            let detail = format!("not 0 in {rows} rows of the chunk index");
            TetFinding::new("reserved_fields", TetSeverity::Warning, detail)
        }
    })
}

fn names(file: &TetFile) -> TetFinding {
    let mut names: Vec<&str> = file
        .datasets()
        .iter()
        .map(super::DatasetInfo::name)
        .collect();
    names.sort_unstable();
    let duplicate = names.windows(2).find(|pair| pair.first() == pair.last());
    let detail = match (duplicate, names.first()) {
        (Some(pair), _) => format!("two datasets are called {:?}", pair.first()),
        (None, Some(&"")) => "a dataset has no name".to_owned(),
        _ => return TetFinding::ok("dataset_names"),
    };
    TetFinding::new("dataset_names", TetSeverity::Warning, detail)
}

/// Decodes payloads and compares checksums. Returns the number of payloads checked.
fn payloads(file: &TetFile, deep: bool, findings: &mut Vec<TetFinding>) -> Result<u64, DenseError> {
    let rows = file.superblock().rows();
    let max = if deep { rows } else { rows.min(SAMPLE) };
    let wanted: Vec<(usize, Vec<u64>)> = file.with_index(|index| {
        let rows = index
            .iter()
            .take(usize::try_from(max).unwrap_or(usize::MAX))
            .map(|row| {
                let id = usize::try_from(row.dataset()).unwrap_or(usize::MAX);
                let rank = file
                    .datasets()
                    .get(id)
                    .map_or(0, |info| info.grid().shape().len());
                let coordinate = row.coordinate().into_iter().take(rank).collect();
                (id, coordinate)
            });
        rows.collect()
    })?;
    let checksums = match file.footer().and_then(|footer| footer.checksums) {
        Some(spill) => Some(file.source().read(spill.span())?),
        None => None,
    };
    let arrays: Vec<_> = (0..file.datasets().len())
        .map(|id| file.dataset_at(id))
        .collect();
    let checked = wanted.par_iter().enumerate().map_init(
        Decompressor::new,
        |decoder, (row, (id, coordinate))| {
            let Some(Some(array)) = arrays.get(*id) else {
                return Ok(None);
            };
            let stored = match array.check_tile(decoder, coordinate) {
                Ok(stored) => stored,
                Err(DenseError::Tet { source, .. }) => {
                    return Ok(Some(("chunk_decode", error_chain(&source))));
                }
                Err(error @ DenseError::Budget { .. }) => {
                    let detail = format!("row {row} of {:?}: {error}", array.name());
                    return Ok(Some(("chunk_decode", detail)));
                }
                Err(error) => return Err(error),
            };
            let expected = checksums.as_ref().and_then(|checksums| {
                let (checksums, _) = checksums.as_chunks::<4>();
                checksums.get(row).copied().map(u32::from_le_bytes)
            });
            let is_other = expected.is_some_and(|expected| crc(&stored) != expected);
            Ok(is_other.then(|| {
                let name = array.name();
                let detail = format!("dataset {name:?}, tile {coordinate:?}: another checksum");
                ("chunk_checksums", detail)
            }))
        },
    );
    let faults: Vec<_> = checked.collect::<Result<Vec<_>, DenseError>>()?;
    let faults: Vec<_> = faults.into_iter().flatten().collect();
    for check in ["chunk_decode", "chunk_checksums"] {
        let of_check = faults.iter().filter(|(name, _)| *name == check);
        let count = of_check.clone().count();
        let details = of_check
            .take(MAX_LISTED)
            .map(|(_, text)| TetFinding::new(check, TetSeverity::Error, text.clone()));
        findings.extend(details);
        if count > MAX_LISTED {
            let detail = format!("{count} in all");
            findings.push(TetFinding::new(check, TetSeverity::Error, detail));
        }
        if count == 0 && (check == "chunk_decode" || checksums.is_some()) {
            findings.push(TetFinding::ok(check));
        }
    }
    if max < rows {
        let detail = format!("{max} of {rows} payloads were decoded; all with --deep");
        findings.push(TetFinding::new(
            "chunk_decode_skipped",
            TetSeverity::Warning,
            detail,
        ));
    }
    Ok(max)
}
