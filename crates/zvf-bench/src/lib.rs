//! Measures `zvf` in its own process; `cargo xtask bench` runs it beside others.
//!
//! ```text
//! zvf-bench table KIND VERTICES [FORM] [STEP]…   a table of medians, and JSON with --json
//! zvf-bench serve KIND VERTICES FORM FOLDER      reads a step and writes a result per line
//! zvf-bench data KIND VERTICES FOLDER            the same data as .npy, for others
//! zvf-bench bucket KIND VERTICES [FORM]…         requests, bytes and time of a bucket far away, in JSON
//! ```
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "made data and figures that nothing depends on, told on the standard streams"
)]

use std::path::Path;

use anyhow::{Result, bail};

mod bucket;
mod data;
mod floor;
mod kernels;
mod measure;
mod random;
mod serve;
mod table;
mod worker;

use data::Data;
use worker::{StoreForm, Worker};

pub use kernels::{Kernel, kernels};

const USAGE: &str = "\
zvf-bench table KIND VERTICES [FORM] [STEP]… [--json] [--keep FOLDER]
zvf-bench serve KIND VERTICES FORM FOLDER
zvf-bench data KIND VERTICES FOLDER
zvf-bench bucket KIND VERTICES [FORM]…

KIND is points, streamlines, skeletons, mesh or graph; FORM is plain, bare (no checksums and no inventory), zstd (level 1), sharded or auto.
A step is write, open, whole, stream, floor, filter, one, hundred, box-0.1, box-1, box-10, validate or pyramid.";

/// Runs the command line.
///
/// # Errors
///
/// Any error of the command.
pub fn run(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["table", kind, vertices, rest @ ..] => {
            table::print(Data::new(kind.parse()?, vertices.parse()?), rest)
        }
        ["serve", kind, vertices, form, folder] => {
            let data = Data::new(kind.parse()?, vertices.parse()?);
            serve::run(Worker::new(data, form.parse()?, Path::new(folder))?)
        }
        ["data", kind, vertices, folder] => {
            Data::new(kind.parse()?, vertices.parse()?).export(Path::new(folder))
        }
        ["bucket", kind, vertices, forms @ ..] => {
            let folder = tempfile::tempdir()?;
            let forms = match forms {
                [] => StoreForm::IN_BUCKETS.to_vec(),
                forms => forms
                    .iter()
                    .map(|form| form.parse())
                    .collect::<Result<_>>()?,
            };
            let data = Data::new(kind.parse()?, vertices.parse()?);
            bucket::print(&data, &forms, folder.path())
        }
        _ => bail!("{USAGE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Workload;

    #[test]
    fn data_is_deterministic_and_boxes_are_not_empty() {
        for kind in Workload::ALL {
            let [one, two] = [(); 2].map(|()| Data::new(kind, 3000));
            assert_eq!(one.positions, two.positions);
            assert_eq!(one.links, two.links);
            let [low, high] = [0.7, 1.4].map(|share| (share * 3000.0) as usize);
            assert!((low..high).contains(&one.positions.len()), "{kind:?}");
            for (_, share) in data::SHARES {
                assert!(
                    one.boxes(share)
                        .iter()
                        .all(|corners| one.inside(corners) > 0)
                );
            }
        }
    }

    #[test]
    fn every_step_has_a_result() {
        let folder = tempfile::tempdir().unwrap();
        for kind in Workload::ALL {
            for form in StoreForm::ALL {
                let mut worker = Worker::new(Data::new(kind, 3000), form, folder.path()).unwrap();
                let vertices = worker.data.positions.len();
                for step in worker::steps(kind, form) {
                    let sample = worker.step(&step).unwrap();
                    let found = sample.found;
                    match step.as_str() {
                        "whole" | "stream" | "write" => assert_eq!(found, vertices, "{kind:?}"),
                        step if step.starts_with("box ") => assert!(found > 0, "{kind:?}"),
                        _ => {}
                    }
                }
            }
        }
    }
}
