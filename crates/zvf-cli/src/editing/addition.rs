//! Geometry out of a file, for a store that is there.

use std::error::Error;

use zvf::{Query, build::GeometryKind, model::root::GeometryKind as ModelKind};

use super::{EditTargetArgs, match_types, session::EditSession};
use crate::{
    arguments::GeometryFileArgs,
    formats::{self, Format, GeometryInput},
    progress::Progress,
};

/// Which file is added, and how it is read.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AdditionArgs {
    #[command(flatten)]
    pub(crate) input: GeometryFileArgs,
    /// The columns of a table that are axes; those of the names that the store gives
    /// its axes when not said.
    #[arg(
        long,
        value_name = "x,y,z",
        help_heading = "Space",
        value_delimiter = ','
    )]
    axes: Vec<String>,
}

/// Why a file is not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdditionError {
    #[error("{0} does not say what it holds, so nobody knows how to read a file for it")]
    NoKind(String),
    #[error("the file calls a group {0:?}; groups of a store that is there go by number")]
    GroupName(String),
}

impl AdditionArgs {
    /// Reads the file as what the store holds.
    pub(crate) async fn read(
        &self,
        work: &EditTargetArgs,
        opened: &EditSession,
    ) -> Result<GeometryInput, Box<dyn Error>> {
        let root = opened.dataset.root();
        let first = root.geometry_kinds.first().map(ModelKind::as_str);
        let mut kinds = GeometryKind::ALL.into_iter();
        let kind = kinds.find(|kind| first == Some(kind.geometry_type()));
        let kind = kind.ok_or_else(|| AdditionError::NoKind(work.store.clone()))?;
        let axes = match self.axes.as_slice() {
            [] => root.axes.iter().map(|axis| axis.name.clone()).collect(),
            given => given.to_vec(),
        };
        let name = self.input.from.path().display().to_string();
        let progress = Progress::with_message(work.quiet, move || format!("reading {name}"));
        let mut input = formats::read(&self.input.from, &self.input.reading(kind, Some(axes)))?;
        if let Some(name) = input.group_names.values().next() {
            return Err(AdditionError::GroupName(name.clone()).into());
        }
        if self.input.from.format() == Format::Csv {
            // The shortest answer that has every column.
            let like = opened.dataset.query(&Query::new().limit(1)).await?;
            match_types::to(&like, &mut input.geometry);
        }
        drop(progress);
        Ok(input)
    }
}
